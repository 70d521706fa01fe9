/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_values.c: values of the metadata of a GGUF file. gguf_open() has checked every length
 * against the file.
 */
#include "formats/gguf_file.h"
#include "io/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct type_row {
    const char *name;
    size_t bytes;
    bool is_int, is_signed;
} types[GGUF_TYPES] = {
    [GGUF_U8] = {"u8", 1, true, false},          [GGUF_I8] = {"i8", 1, true, true},
    [GGUF_U16] = {"u16", 2, true, false},        [GGUF_I16] = {"i16", 2, true, true},
    [GGUF_U32] = {"u32", 4, true, false},        [GGUF_I32] = {"i32", 4, true, true},
    [GGUF_F32] = {"f32", 4, false, false},       [GGUF_BOOL] = {"bool", 1, false, false},
    [GGUF_STRING] = {"string", 0, false, false}, [GGUF_ARRAY] = {"array", 0, false, false},
    [GGUF_U64] = {"u64", 8, true, false},        [GGUF_I64] = {"i64", 8, true, true},
    [GGUF_F64] = {"f64", 8, false, false},
};

size_t gguf_type_bytes(enum gguf_type type)
{
    return types[type].bytes;
}

int gguf_compare(struct gguf_text a, struct gguf_text b)
{
    const int order = memcmp(a.text, b.text, a.bytes < b.bytes ? a.bytes : b.bytes);
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

const struct gguf_value *gguf_find(const struct gguf *g, const char *key)
{
    const struct gguf_text wanted = {key, strlen(key)};
    size_t low = 0, high = g->values;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = gguf_compare(wanted, g->value[middle].key);
        if (order == 0)
            return &g->value[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

static int refuse(const struct gguf *g, const struct gguf_value *v, const char *wanted)
{
    return fail(NJ_E_FORMAT,
                "%s: %.*s is %s%s, not %s; fetch the file again, or convert the model again",
                g->path, gguf_shown(v->key), v->key.text, v->array ? "an array of " : "",
                types[v->type].name, wanted);
}

/* Return the element's bits with the sign extended; a u64 from 2^63 on becomes a negative
 * number. */
static int64_t int_at(const struct gguf_value *v, uint64_t i)
{
    const struct type_row *t = &types[v->type];
    uint64_t x = 0;
    for (size_t k = 0; k < t->bytes; k++)
        x |= (uint64_t)v->data[i * t->bytes + k] << (8 * k);
    const int unused = 64 - 8 * (int)t->bytes;
    return t->is_signed ? (int64_t)(x << unused) >> unused : (int64_t)x;
}

int gguf_int(const struct gguf *g, const char *key, int64_t missing, int64_t *out)
{
    const struct gguf_value *v = gguf_find(g, key);
    *out = missing;
    if (!v)
        return 0;
    if (v->array || !types[v->type].is_int)
        return refuse(g, v, "a whole number");
    *out = int_at(v, 0);
    if (v->type == GGUF_U64 && *out < 0)
        return fail(NJ_E_FORMAT, "%s: %s is %" PRIu64 ", which is too large; fetch the file again",
                    g->path, key, (uint64_t)*out);
    return 0;
}

int gguf_number(const struct gguf *g, const char *key, double missing, double *out)
{
    const struct gguf_value *v = gguf_find(g, key);
    float single;
    int64_t whole = 0;
    *out = missing;
    if (!v)
        return 0;
    if (!v->array && v->type == GGUF_F64) {
        memcpy(out, v->data, sizeof *out);
        return 0;
    }
    if (!v->array && v->type == GGUF_F32) {
        memcpy(&single, v->data, sizeof single);
        *out = (double)single;
        return 0;
    }
    if (v->array || !types[v->type].is_int)
        return refuse(g, v, "a number");
    const int rc = gguf_int(g, key, 0, &whole);
    *out = (double)whole;
    return rc;
}

int gguf_bool(const struct gguf *g, const char *key, bool missing, bool *out)
{
    const struct gguf_value *v = gguf_find(g, key);
    *out = missing;
    if (!v)
        return 0;
    if (v->array || v->type != GGUF_BOOL || *v->data > 1)
        return refuse(g, v, "true or false");
    *out = *v->data == 1;
    return 0;
}

/* Read the text at *at, which moves to the next one. Its length was checked when the file was
 * opened, and is checked again here: others may have written to the file meanwhile. */
static int text_at(const struct gguf *g, const struct gguf_value *v, const unsigned char **at,
                   struct gguf_text *out)
{
    const size_t left = v->bytes - (size_t)(*at - v->data);
    uint64_t bytes = 0;
    for (int k = 0; k < 8 && left >= 8; k++)
        bytes |= (uint64_t)(*at)[k] << (8 * k);
    if (left < 8 || bytes > left - 8)
        return fail(NJ_E_IO, "%s: the file was changed while in use; run again", g->path);
    *out = (struct gguf_text){(const char *)*at + 8, (size_t)bytes};
    *at += 8 + bytes;
    return 0;
}

int gguf_string(const struct gguf *g, const char *key, struct gguf_text *out)
{
    const struct gguf_value *v = gguf_find(g, key);
    *out = (struct gguf_text){0};
    if (!v)
        return 0;
    if (v->array || v->type != GGUF_STRING)
        return refuse(g, v, "text");
    const unsigned char *at = v->data;
    return text_at(g, v, &at, out);
}

int gguf_strings(const struct gguf *g, const char *key, struct gguf_text **out, size_t *count)
{
    const struct gguf_value *v = gguf_find(g, key);
    *out = NULL;
    *count = 0;
    if (!v)
        return 0;
    if (!v->array || v->type != GGUF_STRING)
        return refuse(g, v, "an array of texts");
    struct gguf_text *text = calloc((size_t)v->count + 1, sizeof *text);
    if (!text)
        return fail(NJ_E_NOMEM, "%s: out of memory for %" PRIu64 " texts", g->path, v->count);
    const unsigned char *at = v->data;
    for (uint64_t i = 0; i < v->count; i++) {
        const int rc = text_at(g, v, &at, &text[i]);
        if (rc != 0) {
            free(text);
            return rc;
        }
    }
    *out = text;
    *count = (size_t)v->count;
    return 0;
}

int gguf_ints(const struct gguf *g, const char *key, int32_t **out, size_t *count)
{
    const struct gguf_value *v = gguf_find(g, key);
    *out = NULL;
    *count = 0;
    if (!v)
        return 0;
    if (!v->array || !(types[v->type].is_int || v->type == GGUF_BOOL))
        return refuse(g, v, "an array of whole numbers");
    int32_t *number = calloc((size_t)v->count + 1, sizeof *number);
    if (!number)
        return fail(NJ_E_NOMEM, "%s: out of memory for %" PRIu64 " numbers", g->path, v->count);
    *out = number;
    *count = (size_t)v->count;
    for (uint64_t i = 0; i < v->count; i++) {
        const int64_t x = int_at(v, i);
        number[i] = (int32_t)x;
        if (x < INT32_MIN || x > INT32_MAX || (v->type == GGUF_U64 && x < 0)) {
            free(number);
            *out = NULL;
            return fail(NJ_E_FORMAT,
                        "%s: element %" PRIu64
                        " of %s does not fit in 32 bits; fetch the file again",
                        g->path, i, v->name ? v->name : key);
        }
    }
    return 0;
}

int gguf_floats(const struct gguf *g, const char *key, float **out, size_t *count)
{
    const struct gguf_value *v = gguf_find(g, key);
    *out = NULL;
    *count = 0;
    if (!v)
        return 0;
    if (!v->array || v->type != GGUF_F32)
        return refuse(g, v, "an array of 32-bit numbers");
    *out = calloc((size_t)v->count + 1, sizeof **out);
    if (!*out)
        return fail(NJ_E_NOMEM, "%s: out of memory for %" PRIu64 " numbers", g->path, v->count);
    memcpy(*out, v->data, (size_t)v->count * sizeof **out);
    *count = (size_t)v->count;
    return 0;
}
