/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_rows.c: rows and elements of a tensor, in Hugging Face's order of rows for any order in
 * the file.
 */
#include "base/float16.h"
#include "formats/tensors.h"
#include "ref/blocks.h"

#include <math.h>
#include <string.h>

enum { BLOCK_BYTES_MOST = 256 };

static int64_t columns_of(const struct tensor *t)
{
    int64_t columns = 1;
    for (int i = 1; i < t->rank; i++)
        columns *= t->shape[i];
    return columns;
}

static bool is_ordered(const struct tensor *t)
{
    return t->pairs > 0 || t->order.heads > 0 || t->row_tiles.each > 1 || t->column_tiles.each > 1;
}

/* Return the index of a row in the file. */
static int64_t place_of(const struct tensor *t, int64_t row)
{
    if (t->order.heads > 0)
        return head_order_row(&t->order, row);
    if (t->pairs == 0)
        return head_tiles_element(&t->row_tiles, row);
    const int64_t head_dim = t->shape[0] / t->pairs, at = row % head_dim;
    const int64_t half = at / (head_dim / 2), place = at % (head_dim / 2);
    return row - at + 2 * place + half;
}

/* Return how many elements from `first` on, `count` at most, are contiguous in the file, and set
 * *from to their position. */
static int64_t run_of(const struct tensor *t, int64_t first, int64_t count, int64_t *from)
{
    *from = first;
    if (!is_ordered(t))
        return count;
    const int64_t columns = columns_of(t), column = first % columns;
    const int64_t D = t->column_tiles.each > 1 ? t->column_tiles.D : columns, rest = D - column % D;
    *from = place_of(t, first / columns) * columns + head_tiles_element(&t->column_tiles, column);
    return count < rest ? count : rest;
}

/* Make blocks of several rows together: files often store the same columns of several rows
 * together. */
static void packed_rows(const struct tensor *t, int64_t first, int64_t count, unsigned char *to)
{
    const struct packed *p = t->packed;
    const size_t row_bytes = tensor_type_bytes(t->dtype, p->columns);
    for (int64_t column = 0; column < p->columns; column += p->elements) {
        const size_t at = tensor_type_bytes(t->dtype, column);
        for (int64_t r = 0; r < count; r++)
            p->block(p, is_ordered(t) ? place_of(t, first + r) : first + r, column,
                     to + (size_t)r * row_bytes + at);
    }
}

bool tensor_is_as_stored(const struct tensor *t)
{
    return !is_ordered(t) && t->added == 0 && !t->negated_exp && !t->packed;
}

void tensor_rows(const struct tensor *t, int64_t first, int64_t count, void *dst)
{
    if (t->packed) {
        packed_rows(t, first, count, dst);
        return;
    }
    const unsigned char *data = t->data;
    unsigned char *to = dst;
    const int64_t end = (first + count) * columns_of(t);
    for (int64_t n, from, at = first * columns_of(t); at < end; at += n) {
        n = run_of(t, at, end - at, &from);
        const size_t bytes = tensor_type_bytes(t->dtype, n);
        memcpy(to, data + tensor_type_bytes(t->dtype, from), bytes);
        to += bytes;
    }
}

/* Load element i of possibly unaligned data. */
static uint16_t load_16(const unsigned char *data, int64_t i)
{
    uint16_t x;
    memcpy(&x, data + 2 * i, sizeof x);
    return x;
}

/* Return the block that begins at this element; room: space for one that must be made. */
static const unsigned char *block_at(const struct tensor *t, int64_t element,
                                     unsigned char room[BLOCK_BYTES_MOST])
{
    if (!t->packed)
        return (const unsigned char *)t->data + tensor_type_bytes(t->dtype, element);
    t->packed->block(t->packed, element / t->packed->columns, element % t->packed->columns, room);
    return room;
}

/* Convert elements of stored or made blocks; first and count may lie within blocks. */
static void blocks_to_f32(const struct tensor *t, int64_t first, int64_t count, float *dst)
{
    const int64_t elements = t->packed ? t->packed->elements : tensor_type_block(t->dtype);
    unsigned char room[BLOCK_BYTES_MOST];
    float x[BLOCK_ELEMENTS_MOST];
    for (int64_t n, at = 0; at < count; at += n) {
        const int64_t within = (first + at) % elements, rest = elements - within;
        const unsigned char *block = block_at(t, first + at - within, room);
        n = count - at < rest ? count - at : rest;
        if (t->dtype == NJ_TYPE_F32)
            memcpy(x, block, (size_t)elements * sizeof *x);
        else
            block_of[t->dtype](block, x);
        memcpy(dst + at, x + within, (size_t)n * sizeof *x);
    }
}

/* Convert bfloat16, the usual type of weights that are trained: the loop is vectorized. */
static void bf16_to_f32(const unsigned char *data, int64_t count, float *dst)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = (uint32_t)load_16(data, i) << 16;
        memcpy(&dst[i], &bits, sizeof bits);
    }
}

/* Convert contiguous elements, from element `first` of the file on. */
static void run_to_f32(const struct tensor *t, int64_t first, int64_t count, float *dst)
{
    const unsigned char *data = t->data;
    if (t->packed || tensor_type_block(t->dtype) > 1) {
        blocks_to_f32(t, first, count, dst);
    } else if (t->dtype == NJ_TYPE_F32) {
        memcpy(dst, data + 4 * first, (size_t)count * 4);
    } else if (t->dtype == NJ_TYPE_BF16) {
        bf16_to_f32(data + 2 * first, count, dst);
    } else {
        for (int64_t i = 0; i < count; i++)
            dst[i] = f32_from_f16(load_16(data, first + i));
    }
    for (int64_t i = 0; t->added != 0 && i < count; i++)
        dst[i] += t->added;
    for (int64_t i = 0; t->negated_exp && i < count; i++)
        dst[i] = (float)log(-(double)dst[i]);
}

void tensor_to_f32(const struct tensor *t, int64_t first, int64_t count, float *dst)
{
    for (int64_t n, from, at = 0; at < count; at += n) {
        n = run_of(t, first + at, count - at, &from);
        run_to_f32(t, from, n, dst + at);
    }
}

static void run_to_16(const struct tensor *t, int64_t first, int64_t count, int to_f16,
                      uint16_t *dst)
{
    uint16_t (*narrow)(float) = to_f16 ? f16_from_f32 : bf16_from_f32;
    float x[BLOCK_ELEMENTS_MOST];
    if (t->added == 0 && !t->negated_exp && t->dtype == (to_f16 ? NJ_TYPE_F16 : NJ_TYPE_BF16)) {
        memcpy(dst, (const unsigned char *)t->data + 2 * first, (size_t)count * 2);
        return;
    }
    for (int64_t n, at = 0; at < count; at += n) {
        n = count - at < BLOCK_ELEMENTS_MOST ? count - at : BLOCK_ELEMENTS_MOST;
        run_to_f32(t, first + at, n, x);
        for (int64_t i = 0; i < n; i++)
            dst[at + i] = narrow(x[i]);
    }
}

void tensor_to_16(const struct tensor *t, int64_t first, int64_t count, int to_f16, uint16_t *dst)
{
    for (int64_t n, from, at = 0; at < count; at += n) {
        n = run_of(t, first + at, count - at, &from);
        run_to_16(t, from, n, to_f16, dst + at);
    }
}
