/* SPDX-License-Identifier: Apache-2.0
 *
 * cache_facts.c: reads and writes cache.json. Hashes are 16 hexadecimal digits.
 */
#include "teacher/teacher_cache.h"

#include "formats/tensors.h"
#include "io/error.h"
#include "io/json_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NAME "cache.json"
#define FORMAT "nojit-cache/1"
#define STORE "hidden"
#define REMEDY "make the cache again with `nojit cache`"

enum { HEX = 16 };

static int path_in(const char *dir, char *out, size_t bytes)
{
    return snprintf(out, bytes, "%s/" NAME, dir) < (int)bytes
               ? 0
               : fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", dir);
}

bool cache_is_there(const char *dir)
{
    char path[PATH_BYTES];
    return path_in(dir, path, sizeof path) == 0 && access(path, F_OK) == 0;
}

size_t cache_row_bytes(const struct cache_facts *facts)
{
    return tensor_type_bytes(facts->type, facts->hidden_size);
}

/* ---- reading ---- */

/* A file that is being read; rc: the first failure. */
struct reading {
    const char *path;
    const json_t *root;
    int rc;
};

static void refuse(struct reading *r, const char *field, const char *what)
{
    if (r->rc == 0)
        r->rc = fail(NJ_E_FORMAT, "%s: \"%s\" is not %s; " REMEDY, r->path, field, what);
}

static const char *text(struct reading *r, const char *field)
{
    const char *value = json_string_value(json_object_get(r->root, field));
    if (!value)
        refuse(r, field, "a text");
    return value ? value : "";
}

static void exactly(struct reading *r, const char *field, const char *wanted)
{
    if (strcmp(text(r, field), wanted) != 0 && r->rc == 0)
        r->rc =
            fail(NJ_E_UNSUPPORTED,
                 "%s: \"%s\" is \"%.40s\", and this nojit reads \"%s\"; use the nojit that made "
                 "it, or " REMEDY,
                 r->path, field, text(r, field), wanted);
}

static uint64_t hash(struct reading *r, const char *field)
{
    const char *digits = text(r, field);
    if (strlen(digits) != HEX || strspn(digits, "0123456789abcdef") != HEX)
        refuse(r, field, "a hash of 16 hexadecimal digits");
    return strtoull(digits, NULL, HEX);
}

static int size(struct reading *r, const char *field)
{
    const json_int_t value = json_integer_value(json_object_get(r->root, field));
    if (value < 1 || value > INT32_MAX)
        refuse(r, field, "a size");
    return (int)value;
}

static enum nj_tensor_type type(struct reading *r, const char *field)
{
    const int found = tensor_type_find(text(r, field));
    if (found < 0 || tensor_type_block((enum nj_tensor_type)found) > 1)
        refuse(r, field, "F32, BF16 or F16");
    return (enum nj_tensor_type)found;
}

int cache_facts_read(const char *dir, struct cache_facts *out)
{
    char path[PATH_BYTES];
    json_t *root;
    TRY(path_in(dir, path, sizeof path));
    TRY(json_read_file(path, REMEDY, &root));
    struct reading r = {.path = path, .root = root};
    exactly(&r, "format", FORMAT);
    exactly(&r, "store", STORE);
    *out = (struct cache_facts){.type = type(&r, "dtype"),
                                .hidden_size = size(&r, "hidden_size"),
                                .vocab_size = size(&r, "vocab_size"),
                                .teacher = hash(&r, "teacher"),
                                .head = hash(&r, "head"),
                                .config = hash(&r, "config"),
                                .rotation = hash(&r, "rotation")};
    snprintf(out->source, sizeof out->source, "%s", text(&r, "source"));
    json_decref(root);
    return r.rc;
}

/* ---- writing ---- */

static json_t *digits(uint64_t value)
{
    char out[HEX + 1];
    snprintf(out, sizeof out, "%016" PRIx64, value);
    return json_string(out);
}

int cache_facts_write(const char *dir, const struct cache_facts *facts)
{
    char path[PATH_BYTES];
    TRY(path_in(dir, path, sizeof path));
    json_memory_begin();
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o}", "format", FORMAT, "store",
                  STORE, "dtype", tensor_type_name(facts->type), "hidden_size", facts->hidden_size,
                  "vocab_size", facts->vocab_size, "teacher", digits(facts->teacher), "head",
                  digits(facts->head), "config", digits(facts->config), "rotation",
                  digits(facts->rotation), "source", json_c_text(facts->source));
    return json_write_file(path, root, JSON_INDENT(2));
}
