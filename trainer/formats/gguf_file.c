/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_file.c: reads one GGUF file. Every count and size is checked against the bytes that are
 * left before it is used to allocate or read. gguf_values.c interprets the metadata.
 */
#include "formats/gguf_file.h"

#include "base/checked.h"
#include "formats/cursor.h"
#include "io/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FETCH "fetch the file again"
enum {
    NAME_MOST = 63,                       /* maximum size of a tensor's name */
    KEY_MOST = 65535,                     /* maximum size of a key */
    COUNT_MOST = 1 << 30,                 /* maximum elements of an array, bytes of a string */
    VALUE_LEAST = 8 + 1 + 4 + 1,          /* minimum size of a key and its value */
    TENSOR_LEAST = 8 + 1 + 4 + 8 + 4 + 8, /* minimum size of a tensor's entry */
};

/* Tensor types by ggml's number; type -1: not supported. */
static const struct ggml_type {
    const char *name; /* name of the type; NULL: there is none */
    int type;
} ggml_types[] = {
    [0] = {"F32", NJ_TYPE_F32},
    [1] = {"F16", NJ_TYPE_F16},
    [2] = {"Q4_0", NJ_TYPE_Q4_0},
    [3] = {"Q4_1", NJ_TYPE_Q4_1},
    [6] = {"Q5_0", NJ_TYPE_Q5_0},
    [7] = {"Q5_1", NJ_TYPE_Q5_1},
    [8] = {"Q8_0", NJ_TYPE_Q8_0},
    [9] = {"Q8_1", -1},
    [10] = {"Q2_K", NJ_TYPE_Q2_K},
    [11] = {"Q3_K", NJ_TYPE_Q3_K},
    [12] = {"Q4_K", NJ_TYPE_Q4_K},
    [13] = {"Q5_K", NJ_TYPE_Q5_K},
    [14] = {"Q6_K", NJ_TYPE_Q6_K},
    [15] = {"Q8_K", -1},
    [16] = {"IQ2_XXS", -1},
    [17] = {"IQ2_XS", -1},
    [18] = {"IQ3_XXS", -1},
    [19] = {"IQ1_S", -1},
    [20] = {"IQ4_NL", NJ_TYPE_IQ4_NL},
    [21] = {"IQ3_S", -1},
    [22] = {"IQ2_S", -1},
    [23] = {"IQ4_XS", NJ_TYPE_IQ4_XS},
    [24] = {"I8", -1},
    [25] = {"I16", -1},
    [26] = {"I32", -1},
    [27] = {"I64", -1},
    [28] = {"F64", -1},
    [29] = {"IQ1_M", -1},
    [30] = {"BF16", NJ_TYPE_BF16},
    [34] = {"TQ1_0", -1},
    [35] = {"TQ2_0", -1},
    [39] = {"MXFP4", NJ_TYPE_MXFP4},
    [40] = {"NVFP4", -1},
    [41] = {"Q1_0", -1},
    [42] = {"Q2_0", -1},
};
enum { GGML_TYPES = sizeof ggml_types / sizeof *ggml_types };

int gguf_tensor_type(enum nj_tensor_type type)
{
    for (int id = 0; id < GGML_TYPES; id++)
        if (ggml_types[id].name && ggml_types[id].type == (int)type)
            return id;
    return -1;
}

/* ---- texts ---- */

static int take_text(struct cursor *c, uint64_t most, const char *what, struct gguf_text *out)
{
    uint64_t bytes;
    TRY(cursor_number(c, 8, what, &bytes));
    if (bytes > most)
        return fail(NJ_E_FORMAT,
                    "%s: %s has %" PRIu64 " bytes; at most %" PRIu64 " are allowed: " FETCH,
                    c->path, what, bytes, most);
    if (bytes > cursor_left(c))
        return cursor_short(c, what);
    *out = (struct gguf_text){(const char *)c->at, (size_t)bytes};
    c->at += bytes;
    return 0;
}

/* ---- metadata ---- */

static int skip_elements(struct cursor *c, const char *key, const struct gguf_value *v)
{
    const size_t each = gguf_type_bytes(v->type);
    struct gguf_text text;
    if (v->type != GGUF_STRING) {
        if (v->count > cursor_left(c) / each)
            return cursor_short(c, key);
        c->at += v->count * each;
        return 0;
    }
    for (uint64_t i = 0; i < v->count; i++)
        TRY(take_text(c, COUNT_MOST, key, &text));
    return 0;
}

static int refuse_type(const struct cursor *c, const char *key, bool array, uint64_t type)
{
    if (array && type == GGUF_ARRAY)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: %s is an array of arrays, which is not supported; use another release",
                    c->path, key);
    return fail(NJ_E_FORMAT, "%s: %s has the type %" PRIu64 ", which GGUF does not know; " FETCH,
                c->path, key, type);
}

static int take_type(struct cursor *c, const char *key, struct gguf_value *v)
{
    uint64_t type;
    int rc = cursor_number(c, 4, key, &type);
    v->count = 1;
    v->array = rc == 0 && type == GGUF_ARRAY;
    if (v->array) {
        rc = cursor_number(c, 4, key, &type);
        if (rc == 0)
            rc = cursor_number(c, 8, key, &v->count);
        if (rc == 0 && v->count > COUNT_MOST)
            rc =
                fail(NJ_E_FORMAT, "%s: %s has %" PRIu64 " elements; at most %d are allowed: " FETCH,
                     c->path, key, v->count, (int)COUNT_MOST);
    }
    if (rc == 0 && (type >= GGUF_TYPES || type == GGUF_ARRAY))
        rc = refuse_type(c, key, v->array, type);
    v->type = (enum gguf_type)type;
    return rc;
}

static int take_value(struct cursor *c, struct gguf_value *v)
{
    char key[65]; /* key, for sentences */
    int rc = take_text(c, KEY_MOST, "a metadata key", &v->key);
    if (rc == 0 && v->key.bytes == 0)
        rc = fail(NJ_E_FORMAT, "%s: a metadata key is empty; " FETCH, c->path);
    if (rc != 0)
        return rc;
    snprintf(key, sizeof key, "%.*s", gguf_shown(v->key), v->key.text);
    rc = take_type(c, key, v);
    v->data = c->at;
    if (rc == 0)
        rc = skip_elements(c, key, v);
    v->bytes = (size_t)(c->at - v->data);
    return rc;
}

static int compare_keys(const void *a, const void *b)
{
    return gguf_compare(((const struct gguf_value *)a)->key, ((const struct gguf_value *)b)->key);
}

static int sort_values(struct gguf *g)
{
    qsort(g->value, g->values, sizeof *g->value, compare_keys);
    for (size_t i = 1; i < g->values; i++)
        if (compare_keys(&g->value[i - 1], &g->value[i]) == 0)
            return fail(NJ_E_FORMAT, "%s: the metadata key %.*s is there twice; " FETCH, g->path,
                        gguf_shown(g->value[i].key), g->value[i].key.text);
    return 0;
}

static int take_values(struct cursor *c, uint64_t count, struct gguf *g)
{
    int rc = 0;
    if (count > cursor_left(c) / VALUE_LEAST)
        return cursor_short(c, "the metadata");
    g->value = calloc((size_t)count + 1, sizeof *g->value);
    if (!g->value)
        return fail(NJ_E_NOMEM, "%s: out of memory for %" PRIu64 " metadata keys", g->path, count);
    for (; rc == 0 && g->values < count; g->values++)
        rc = take_value(c, &g->value[g->values]);
    return rc != 0 ? rc : sort_values(g);
}

/* ---- tensors ---- */

static int take_name(struct cursor *c, struct tensor *t)
{
    struct gguf_text text;
    TRY(take_text(c, NAME_MOST, "a tensor's name", &text));
    if (text.bytes == 0 || memchr(text.text, '\0', text.bytes) != NULL)
        return fail(NJ_E_FORMAT, "%s: a tensor's name is empty or holds a zero byte; " FETCH,
                    c->path);
    memcpy(t->name, text.text, text.bytes);
    return 0;
}

/* Read the shape; the file has the fastest-running size first. */
static int take_shape(struct cursor *c, struct tensor *t, uint64_t *elements)
{
    uint64_t rank, size;
    int rc = cursor_number(c, 4, t->name, &rank);
    *elements = 1;
    if (rc == 0 && (rank < 1 || rank > 4))
        rc = fail(NJ_E_FORMAT,
                  "%s: tensor %s has %" PRIu64 " dimensions; 1 to 4 are allowed: " FETCH, c->path,
                  t->name, rank);
    t->rank = rc == 0 ? (int)rank : 0;
    for (int i = t->rank - 1; rc == 0 && i >= 0; i--) {
        rc = cursor_number(c, 8, t->name, &size);
        if (rc != 0)
            return rc;
        if (size == 0 || __builtin_mul_overflow(*elements, size, elements) ||
            *elements > (uint64_t)1 << 56)
            return fail(NJ_E_FORMAT, "%s: tensor %s: its shape is empty or too large; " FETCH,
                        c->path, t->name);
        t->shape[i] = (int64_t)size;
    }
    return rc;
}

static int take_tensor_type(struct cursor *c, struct tensor *t)
{
    uint64_t id;
    TRY(cursor_number(c, 4, t->name, &id));
    if (id >= GGML_TYPES || ggml_types[id].name == NULL)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s has the type %" PRIu64 ", which GGUF does not know; " FETCH,
                    c->path, t->name, id);
    if (ggml_types[id].type < 0)
        return fail(
            NJ_E_UNSUPPORTED,
            "%s: tensor %s is %s, which is not supported; use a release in Q4_K_M, Q8_0 or BF16",
            c->path, t->name, ggml_types[id].name);
    t->dtype = (enum nj_tensor_type)ggml_types[id].type;
    return 0;
}

/* Read an entry; *offset is that of its data. */
static int take_tensor(struct cursor *c, struct tensor *t, uint64_t *offset)
{
    uint64_t elements;
    TRY(take_name(c, t));
    TRY(take_shape(c, t, &elements));
    TRY(take_tensor_type(c, t));
    TRY(cursor_number(c, 8, t->name, offset));
    const int64_t columns = t->shape[t->rank - 1], block = tensor_type_block(t->dtype);
    if (columns % block != 0)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s has rows of %" PRId64 " elements, and %s has blocks of %" PRId64
                    "; " FETCH,
                    c->path, t->name, columns, tensor_type_name(t->dtype), block);
    t->bytes = tensor_type_bytes(t->dtype, (int64_t)elements);
    return 0;
}

/* Point t at its bytes in the data, which begin at c. */
static int place_tensor(const struct cursor *c, struct tensor *t, uint64_t offset, size_t alignment)
{
    if (offset % alignment != 0)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s begins at byte %" PRIu64
                    " of the data, no multiple of %zu; " FETCH,
                    c->path, t->name, offset, alignment);
    if (offset > cursor_left(c) || t->bytes > cursor_left(c) - offset)
        return fail(NJ_E_FORMAT,
                    "%s: tensor %s has %zu bytes from byte %" PRIu64
                    " of the data on, which has %zu; the file is cut short: fetch it again",
                    c->path, t->name, t->bytes, offset, cursor_left(c));
    t->data = c->at + offset;
    return 0;
}

static int find_alignment(const struct gguf *g, size_t *out)
{
    int64_t alignment;
    const int rc = gguf_int(g, "general.alignment", 32, &alignment);
    *out = (size_t)alignment;
    if (rc != 0)
        return rc;
    if (alignment < 1 || alignment > 1 << 30 || (alignment & (alignment - 1)) != 0)
        return fail(NJ_E_FORMAT, "%s: general.alignment is %" PRId64 ", no power of two; " FETCH,
                    g->path, alignment);
    return 0;
}

static int take_tensors(struct cursor *c, uint64_t count, struct gguf *g)
{
    struct tensors *w = &g->tensors;
    size_t alignment;
    if (count > cursor_left(c) / TENSOR_LEAST)
        return cursor_short(c, "the list of tensors");
    int rc = find_alignment(g, &alignment);
    if (rc != 0)
        return rc;
    uint64_t *offset = calloc((size_t)count + 1, sizeof *offset);
    w->tensor = calloc((size_t)count + 1, sizeof *w->tensor);
    if (!offset || !w->tensor)
        rc = fail(NJ_E_NOMEM, "%s: out of memory for %" PRIu64 " tensors", g->path, count);
    for (; rc == 0 && w->count < count; w->count++)
        rc = take_tensor(c, &w->tensor[w->count], &offset[w->count]);
    const size_t data = size_up((size_t)(c->at - c->base), alignment);
    if (rc == 0 && count > 0 && data > (size_t)(c->end - c->base))
        rc = cursor_short(c, "the data");
    if (rc == 0 && count > 0)
        c->at = c->base + data;
    for (size_t i = 0; rc == 0 && i < w->count; i++)
        rc = place_tensor(c, &w->tensor[i], offset[i], alignment);
    free(offset);
    return rc != 0 ? rc : tensors_check_overlap(g->path, w->tensor, w->count);
}

/* ---- a file ---- */

static int take_version(struct cursor *c)
{
    uint64_t version;
    if (memcmp(c->at, "GGUF", 4) != 0)
        return fail(NJ_E_FORMAT,
                    "%s: not a GGUF file; give one, or the folder of a Hugging Face model",
                    c->path);
    c->at += 4;
    const int rc = cursor_number(c, 4, "the version", &version);
    if (rc != 0 || version == 2 || version == 3)
        return rc;
    if (version != 0 && (version & 0xffff) == 0)
        return fail(NJ_E_UNSUPPORTED,
                    "%s: the file is in big-endian byte order; use the little-endian release",
                    c->path);
    return fail(NJ_E_UNSUPPORTED,
                "%s: GGUF version %" PRIu64 "; 2 and 3 are supported: convert the model again",
                c->path, version);
}

int gguf_file_open(const char *path, const char *remedy, struct gguf *g)
{
    struct cursor c;
    uint64_t tensors = 0, values = 0;
    memset(g, 0, sizeof *g);
    if (snprintf(g->path, sizeof g->path, "%s", path) >= (int)sizeof g->path)
        return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", path);
    TRY(cursor_open(g->path, "a GGUF", 24, remedy, &g->tensors, &c));
    TRY(take_version(&c));
    TRY(cursor_number(&c, 8, "the number of tensors", &tensors));
    TRY(cursor_number(&c, 8, "the number of metadata keys", &values));
    TRY(take_values(&c, values, g));
    return take_tensors(&c, tensors, g);
}
