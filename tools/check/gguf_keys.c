/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_keys.c: reads the few values of a GGUF file's metadata that decide which keys a model uses, as a config.json.
 * The trainer's reader (trainer/formats/gguf.c) checks the rest of the file.
 */
#include "check/gguf_keys.h"

#include "base/families.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 8, ARRAY = 9, TEXT_BYTES = 64 };

struct reader {
    FILE *file;
    uint64_t left; /* number of bytes left */
    bool short_of; /* whether more was asked for than is left */
};

static void take(struct reader *r, void *to, uint64_t bytes)
{
    memset(to, 0, bytes);
    r->short_of = r->short_of || bytes > r->left || fread(to, 1, bytes, r->file) != bytes;
    r->left -= r->short_of ? 0 : bytes;
}

static void pass_over(struct reader *r, uint64_t bytes)
{
    r->short_of = r->short_of || bytes > r->left || fseeko(r->file, (off_t)bytes, SEEK_CUR) != 0;
    r->left -= r->short_of ? 0 : bytes;
}

static uint64_t number(struct reader *r, size_t bytes)
{
    unsigned char b[8];
    uint64_t x = 0;
    take(r, b, bytes);
    for (size_t i = 0; i < bytes; i++)
        x |= (uint64_t)b[i] << 8 * i;
    return x;
}

/* Read a text; "" for one that is too long to be of use here. */
static void text(struct reader *r, char out[TEXT_BYTES])
{
    const uint64_t bytes = number(r, 8);
    *out = '\0';
    if (bytes >= TEXT_BYTES) {
        pass_over(r, bytes);
        return;
    }
    take(r, out, bytes);
    out[bytes] = '\0';
}

/* Read a value: text, or a whole number; of an array, the first element. */
static void value(struct reader *r, char out[TEXT_BYTES])
{
    static const size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    uint64_t type = number(r, 4), count = 1;
    if (type == ARRAY) {
        type = number(r, 4);
        count = number(r, 8);
    }
    *out = '\0';
    if (type >= sizeof(sizes) / sizeof(*sizes) || type == ARRAY || count > r->left) {
        r->short_of = true;
        return;
    }
    char rest[TEXT_BYTES];
    for (uint64_t i = 0; i < count && !r->short_of; i++) {
        if (type == TEXT)
            text(r, i ? rest : out);
        else if (i == 0)
            snprintf(out, TEXT_BYTES, "%" PRIu64, number(r, sizes[type]));
        else
            number(r, sizes[type]);
    }
}

/* Return whether a key is this one of an architecture: "llama.block_count" for "block_count". */
static bool ends_in(const char *key, const char *name)
{
    const char *dot = strchr(key, '.');
    return dot && !strcmp(dot + 1, name);
}

/* Return the family's name in transformers, or that of an architecture without a family. */
static json_t *model_type(const char *architecture)
{
    const struct family *family = family_of_gguf(architecture);
    return json_string(family ? family->model_type : architecture);
}

/* Read the values as fields of a config.json. */
static void read_values(struct reader *r, json_t *out)
{
    static const char *const fields[][2] = {{"architecture", "model_type"},
                                            {"embedding_length", "hidden_size"},
                                            {"attention.head_count", "num_attention_heads"},
                                            {"attention.key_length", "head_dim"}};
    for (uint64_t values = number(r, 8); values > 0 && !r->short_of; values--) {
        char key[TEXT_BYTES], x[TEXT_BYTES];
        text(r, key);
        value(r, x);
        for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
            if (ends_in(key, fields[i][0]))
                json_object_set_new(out, fields[i][1],
                                    i == 0 ? model_type(x) : json_integer(strtoll(x, NULL, 10)));
    }
}

json_t *gguf_keys_load(const char *path, char why[WHY_BYTES])
{
    struct reader r = {.file = fopen(path, "rb")};
    char magic[4] = "";
    if (!r.file) {
        fail(why, "%.100s: %s", path, strerror(errno));
        return NULL;
    }
    fseeko(r.file, 0, SEEK_END);
    r.left = (uint64_t)ftello(r.file);
    rewind(r.file);
    take(&r, magic, 4);
    number(&r, 4); /* version */
    number(&r, 8); /* tensors */
    json_t *out = json_object();
    if (!r.short_of && out)
        read_values(&r, out);
    fclose(r.file);
    if (!r.short_of && memcmp(magic, "GGUF", 4) == 0)
        return out;
    fail(why,
         memcmp(magic, "APR", 3) == 0
             ? "%.100s: APR files are not read here; give the model's folder or GGUF file"
             : "%.100s: neither a folder nor a whole GGUF file",
         path);
    json_decref(out);
    return NULL;
}
