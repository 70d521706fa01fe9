/* SPDX-License-Identifier: Apache-2.0
 *
 * parquet_values.c: the values of a page in each of their encodings, one at a time.
 */
#include "data/parquet_inside.h"

#include "io/error.h"

#include <stdlib.h>
#include <string.h>

static int bad_values(const struct pq_column *c)
{
    return fail(NJ_E_FORMAT,
                "%s: row %lld: the values of the column %s end too early, or do not fit their "
                "encoding; the file is damaged, so make it again",
                c->p->f->path, (long long)c->p->row, c->node->name);
}

static uint32_t load32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* ---- plain ---- */

/* Return the bytes of a number as it is stored. */
static size_t stored_bytes(const struct pq_node *n)
{
    return n->physical == PQ_INT64 || n->physical == PQ_DOUBLE ? 8 : 4;
}

/* Read the number at these bytes. */
static struct pq_value number(const struct pq_node *n, const unsigned char *at)
{
    struct pq_value v = {{0}};
    float real;
    if (n->physical == PQ_INT64) {
        memcpy(&v.as.whole, at, 8);
    } else if (n->physical == PQ_DOUBLE) {
        memcpy(&v.as.real, at, 8);
    } else if (n->physical == PQ_FLOAT) {
        memcpy(&real, at, 4);
        v.as.real = (double)real;
    } else {
        v.as.whole = n->is_unsigned ? (int64_t)load32(at) : (int64_t)(int32_t)load32(at);
    }
    return v;
}

static bool plain_text(const unsigned char **at, const unsigned char *end, struct thrift_text *out)
{
    if (end - *at < 4 || load32(*at) > (size_t)(end - *at) - 4)
        return false;
    *out = (struct thrift_text){(const char *)*at + 4, load32(*at)};
    *at += 4 + out->bytes;
    return true;
}

static bool plain_next(const struct pq_node *n, struct pq_values *v, struct pq_value *out)
{
    if (n->physical == PQ_BYTES)
        return plain_text(&v->at, v->end, &out->as.text);
    if (n->physical == PQ_BOOLEAN) {
        if (v->bit / 8 >= (uint64_t)(v->end - v->at))
            return false;
        out->as.whole = v->at[v->bit / 8] >> (v->bit % 8) & 1;
        v->bit++;
        return true;
    }
    const size_t bytes = stored_bytes(n);
    if ((size_t)(v->end - v->at) < bytes)
        return false;
    *out = number(n, v->at);
    v->at += bytes;
    return true;
}

/* ---- the others ---- */

static bool index_next(const struct pq_column *c, struct pq_values *v, struct pq_value *out)
{
    uint32_t index;
    if (!hybrid_next(&v->runs, &index) || index >= c->entries)
        return false;
    *out = c->entry[index];
    return true;
}

static bool run_next(struct pq_values *v, struct pq_value *out)
{
    uint32_t value;
    const bool there = hybrid_next(&v->runs, &value);
    out->as.whole = value;
    return there;
}

static bool delta_whole(const struct pq_node *n, struct pq_values *v, struct pq_value *out)
{
    int64_t value;
    if (!delta_next(&v->whole, &value))
        return false;
    if (n->physical == PQ_INT32)
        value = n->is_unsigned ? (int64_t)(uint32_t)value : (int64_t)(int32_t)value;
    out->as.whole = value;
    return true;
}

/* Read a text whose length was stored before all texts. */
static bool length_next(struct pq_values *v, struct thrift_text *out)
{
    int64_t bytes;
    if (!delta_next(&v->whole, &bytes) || bytes < 0 || bytes > v->end - v->at)
        return false;
    *out = (struct thrift_text){(const char *)v->at, (size_t)bytes};
    v->at += bytes;
    return true;
}

/* Read a text that begins like the one before it. None is longer than all that was stored, for which there is room. */
static bool prefix_next(struct pq_values *v, struct thrift_text *out)
{
    int64_t prefix;
    if (!delta_next(&v->more, &prefix) || prefix < 0 || (uint64_t)prefix > v->text_bytes ||
        !length_next(v, out))
        return false;
    memcpy(v->text.at + prefix, out->text, out->bytes);
    v->text_bytes = (size_t)prefix + out->bytes;
    *out = (struct thrift_text){(const char *)v->text.at, v->text_bytes};
    return true;
}

/* Read a number whose bytes lie apart: first the lowest bytes of all numbers, then the next ones. */
static bool split_next(const struct pq_node *n, struct pq_values *v, struct pq_value *out)
{
    unsigned char bytes[8];
    const size_t width = stored_bytes(n);
    if (v->taken >= v->count)
        return false;
    for (size_t k = 0; k < width; k++)
        bytes[k] = v->at[k * v->count + v->taken];
    v->taken++;
    *out = number(n, bytes);
    return true;
}

int pq_value_next(struct pq_column *c, struct pq_value *out)
{
    struct pq_values *v = &c->values;
    const struct pq_node *n = c->node;
    bool there = false;
    switch (v->encoding) {
    case PQ_PLAIN:
        there = plain_next(n, v, out);
        break;
    case PQ_PLAIN_DICTIONARY:
    case PQ_RLE_DICTIONARY:
        there = index_next(c, v, out);
        break;
    case PQ_RLE:
        there = run_next(v, out);
        break;
    case PQ_DELTA:
        there = delta_whole(n, v, out);
        break;
    case PQ_DELTA_LENGTH:
        there = length_next(v, &out->as.text);
        break;
    case PQ_DELTA_BYTES:
        there = prefix_next(v, &out->as.text);
        break;
    case PQ_SPLIT:
        there = split_next(n, v, out);
        break;
    default:
        break;
    }
    return there ? 0 : bad_values(c);
}

/* ---- beginning ---- */

static bool begin_indices(struct pq_values *v)
{
    if (v->at == v->end || *v->at > 32)
        return v->at == v->end; /* no value at all */
    v->runs = (struct hybrid){.at = v->at + 1, .end = v->end, .width = *v->at};
    return true;
}

static bool begin_runs(struct pq_values *v)
{
    if (v->end - v->at < 4 || load32(v->at) > (size_t)(v->end - v->at) - 4)
        return false;
    v->runs = (struct hybrid){.at = v->at + 4, .end = v->at + 4 + load32(v->at), .width = 1};
    return true;
}

static bool begin_lengths(struct pq_values *v)
{
    if (!delta_begin(&v->whole, v->at, v->end))
        return false;
    v->at = delta_end(&v->whole);
    return v->at != NULL;
}

static bool begin_prefixes(struct pq_values *v)
{
    if (!delta_begin(&v->more, v->at, v->end))
        return false;
    v->at = delta_end(&v->more);
    v->text_bytes = 0;
    return v->at != NULL && begin_lengths(v);
}

static bool begin_split(const struct pq_node *n, struct pq_values *v)
{
    v->count = (size_t)(v->end - v->at) / stored_bytes(n);
    v->taken = 0;
    return (size_t)(v->end - v->at) % stored_bytes(n) == 0;
}

static bool begin(struct pq_column *c)
{
    struct pq_values *v = &c->values;
    const int type = c->node->physical;
    const bool whole = type == PQ_INT32 || type == PQ_INT64;
    const bool real = type == PQ_FLOAT || type == PQ_DOUBLE;
    switch (v->encoding) {
    case PQ_PLAIN:
        return true;
    case PQ_PLAIN_DICTIONARY:
    case PQ_RLE_DICTIONARY:
        return begin_indices(v);
    case PQ_RLE:
        return type == PQ_BOOLEAN && begin_runs(v);
    case PQ_DELTA:
        return whole && delta_begin(&v->whole, v->at, v->end);
    case PQ_DELTA_LENGTH:
        return type == PQ_BYTES && begin_lengths(v);
    case PQ_DELTA_BYTES:
        return type == PQ_BYTES && begin_prefixes(v);
    case PQ_SPLIT:
        return (whole || real) && begin_split(c->node, v);
    default:
        return false;
    }
}

int pq_values_begin(struct pq_column *c, int encoding, const unsigned char *at,
                    const unsigned char *end)
{
    const struct pq_buffer text = c->values.text;
    c->values = (struct pq_values){.encoding = encoding, .at = at, .end = end, .text = text};
    if (encoding == PQ_DELTA_BYTES && !pq_reserve(&c->values.text, (size_t)(end - at)))
        return pq_no_memory(c->p);
    /* A page of nulls may have no value, and then not even the head of its encoding. */
    return at == end || begin(c) ? 0 : bad_values(c);
}

int pq_dictionary_read(struct pq_column *c, size_t bytes, int64_t count)
{
    struct pq_values v = {.at = c->dictionary.at, .end = c->dictionary.at + bytes};
    if (count < 0 || (uint64_t)count > bytes || c->node->physical == PQ_BOOLEAN)
        return bad_values(c);
    free(c->entry);
    c->entries = (size_t)count;
    c->entry = calloc(c->entries + 1, sizeof *c->entry);
    if (!c->entry)
        return pq_no_memory(c->p);
    for (size_t i = 0; i < c->entries; i++)
        if (!plain_next(c->node, &v, &c->entry[i]))
            return bad_values(c);
    return 0;
}
