/* SPDX-License-Identifier: Apache-2.0
 *
 * metadata.c: see metadata.h. docs/apr.md has the keys of APR files.
 */
#include "text/metadata.h"

#include "formats/apr.h"
#include "io/error.h"
#include "io/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name

enum { NAMES = 2 };
/* Keys, in the order of GGUF's; the first of the names that is present counts. */
static const struct row {
    const char *key, *name[NAMES];
    enum gguf_type type; /* type of the value; GGUF_I64: any whole number */
    bool array;
} rows[] = {
    {"tokenizer.chat_template", {"chat_template", "tokenizer.chat_template"}, GGUF_STRING, false},
    {KEY("add_bos_token"), {"tokenizer.add_bos_token"}, GGUF_BOOL, false},
    {KEY("bos_token_id"), {"tokenizer.bos_token_id"}, GGUF_I64, false},
    {KEY("eos_token_id"), {"tokenizer.eos_token_id"}, GGUF_I64, false},
    {KEY("merges"), {"tokenizer.merges"}, GGUF_STRING, true},
    {KEY("model"), {"tokenizer.model", "tokenizer.model_type"}, GGUF_STRING, false},
    {KEY("padding_token_id"), {"tokenizer.padding_token_id"}, GGUF_I64, false},
    {KEY("pre"), {"tokenizer.pre_type"}, GGUF_STRING, false},
    {KEY("token_type"), {"tokenizer.token_type"}, GGUF_I64, true},
    {KEY("tokens"), {"tokenizer.vocabulary"}, GGUF_STRING, true},
};
enum { ROWS = sizeof rows / sizeof *rows };

bool metadata_is(const char *path)
{
    return gguf_is(path) || apr_is(path);
}

const char *metadata_name(const struct gguf *g, const char *key)
{
    const struct gguf_value *v = gguf_find(g, key);
    if (v && v->name)
        return v->name;
    for (int i = 0; g->apr && i < ROWS; i++)
        if (strcmp(rows[i].key, key) == 0)
            return rows[i].name[0];
    return key;
}

/* Return the text of a value; byte-level BPE has another name in GGUF. */
static const char *text_of(const struct row *r, const json_t *value)
{
    const char *text = json_string_value(value);
    const bool bpe = strcmp(r->key, KEY("model")) == 0 && strcasecmp(text, "bpe") == 0;
    return bpe ? "gpt2" : text;
}

static size_t text_bytes(const struct row *r, const json_t *value)
{
    return strcmp(r->key, KEY("model")) == 0 ? strlen(text_of(r, value))
                                             : json_string_length(value);
}

/* Return the size of one value in GGUF's form; 0: it is of another type. */
static size_t bytes_of(const struct row *r, const json_t *value)
{
    if (r->type == GGUF_STRING)
        return json_is_string(value) ? 8 + text_bytes(r, value) : 0;
    if (r->type == GGUF_BOOL)
        return json_is_boolean(value) ? 1 : 0;
    return json_is_integer(value) ? 8 : 0;
}

static void put_number(unsigned char **to, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        *(*to)++ = (unsigned char)(x >> 8 * i);
}

static void put(const struct row *r, const json_t *value, unsigned char **to)
{
    if (r->type == GGUF_STRING) {
        const size_t bytes = text_bytes(r, value);
        put_number(to, bytes);
        memcpy(*to, text_of(r, value), bytes);
        *to += bytes;
    } else if (r->type == GGUF_BOOL) {
        *(*to)++ = json_is_true(value);
    } else {
        put_number(to, (uint64_t)json_integer_value(value));
    }
}

static const char *name_of(const struct apr *a, const struct row *r)
{
    return apr_key(a, r->name, NAMES);
}

/* Add the size of the value to bytes. */
static int measure(const struct apr *a, const struct row *r, const json_t *value, size_t *bytes)
{
    const size_t count = r->array ? json_array_size(value) : 1;
    bool sound = !r->array || json_is_array(value);
    for (size_t i = 0; sound && i < count; i++) {
        const size_t more = bytes_of(r, r->array ? json_array_get(value, i) : value);
        sound = more > 0;
        *bytes += more;
    }
    return sound ? 0
                 : fail(NJ_E_FORMAT,
                        "%s: %s is not %s; fetch the file again, or import the model again",
                        a->path, name_of(a, r),
                        r->type == GGUF_BOOL     ? "true or false"
                        : r->type == GGUF_STRING ? r->array ? "a list of texts" : "text"
                        : r->array               ? "a list of whole numbers"
                                                 : "a whole number");
}

static void add(const struct apr *a, const struct row *r, const json_t *value, struct gguf *g,
                unsigned char **to)
{
    struct gguf_value *v = &g->value[g->values++];
    *v = (struct gguf_value){.key = {r->key, strlen(r->key)},
                             .name = name_of(a, r),
                             .type = r->type,
                             .array = r->array,
                             .count = r->array ? json_array_size(value) : 1,
                             .data = *to};
    for (size_t i = 0; i < v->count; i++)
        put(r, r->array ? json_array_get(value, i) : value, to);
    v->bytes = (size_t)(*to - v->data);
}

/* Return the value of a row. A vocabulary that does not give its kind is taken for byte-level
 * BPE, as aprender does; of a list of ids the first counts, as in config.json. */
static json_t *value_of(const struct apr *a, const struct row *r)
{
    json_t *value = apr_value(a, name_of(a, r));
    const bool guess = !value && strcmp(r->key, KEY("model")) == 0;
    if (guess && apr_value(a, "tokenizer.vocabulary"))
        return json_string("gpt2");
    const bool ids = r->type == GGUF_I64 && !r->array && json_is_array(value);
    return json_incref(ids ? json_array_get(value, 0) : value);
}

static int translate(const struct apr *a, struct gguf *g)
{
    json_t *value[ROWS] = {NULL};
    size_t bytes = ROWS * sizeof *g->value;
    int rc = 0;
    json_memory_begin();
    for (int i = 0; i < ROWS; i++)
        value[i] = value_of(a, &rows[i]);
    const bool none = json_memory_end();
    for (int i = 0; i < ROWS && rc == 0; i++)
        rc = value[i] ? measure(a, &rows[i], value[i], &bytes) : 0;
    g->value = rc != 0 || none ? NULL : malloc(bytes); /* the data that they point to follow them */
    if (rc == 0 && !g->value)
        rc = fail(NJ_E_NOMEM, "%s: out of memory for its tokenizer", a->path);
    unsigned char *to = rc != 0 ? NULL : (unsigned char *)(g->value + ROWS);
    for (int i = 0; i < ROWS; i++) {
        if (rc == 0 && value[i])
            add(a, &rows[i], value[i], g, &to);
        json_decref(value[i]);
    }
    return rc;
}

static int open_apr(const char *path, struct gguf *out)
{
    struct apr a;
    memset(out, 0, sizeof *out);
    TRY(apr_open(path, &a));
    memcpy(out->path, a.path, sizeof out->path);
    out->apr = true;
    const int rc = translate(&a, out);
    apr_close(&a);
    return rc;
}

int metadata_open(const char *path, struct gguf *out)
{
    return apr_is(path) ? open_apr(path, out) : gguf_open(path, out);
}
