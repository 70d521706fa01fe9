/* SPDX-License-Identifier: Apache-2.0
 *
 * apr_blocks.c: see apr_blocks.h.
 */
#include "formats/apr_blocks.h"

#include "base/float16.h"
#include "ref/blocks.h"

#include <stdbool.h>
#include <string.h>

enum { ELEMENTS = 32, Q4_BYTES = 2 + ELEMENTS / 2 };

uint64_t apr_blocks_bytes(enum apr_blocks kind, uint64_t elements)
{
    return kind == APR_Q8 ? 4 + elements : (elements + ELEMENTS - 1) / ELEMENTS * Q4_BYTES;
}

static const unsigned char *q4_at(const struct packed *p, int64_t element)
{
    return p->part[0].data + element / ELEMENTS * Q4_BYTES;
}

/* Convert a block. ggml has elements 0 to 15 in the low bits, and 16 to 31 in the high ones. */
static void q4_block(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    const unsigned char *from = q4_at(p, row * p->columns + column);
    memcpy(to, from, 2);
    for (int e = 0; e < ELEMENTS / 2; e++)
        to[2 + e] =
            (unsigned char)(half_byte(from + 2, e) | half_byte(from + 2, e + ELEMENTS / 2) << 4);
}

static void q4_numbers(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    for (int e = 0; e < p->elements; e++) {
        const int64_t element = row * p->columns + column + e;
        const unsigned char *from = q4_at(p, element);
        const float x = (float)(half_byte(from + 2, (int)(element % ELEMENTS)) - 8) * half_at(from);
        memcpy(to + (size_t)e * sizeof x, &x, sizeof x);
    }
}

static void q8_block(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    const uint16_t scale = f16_from_f32(float_at(p->part[0].data));
    memcpy(to, &scale, sizeof scale);
    memcpy(to + sizeof scale, p->part[0].data + 4 + row * p->columns + column, ELEMENTS);
}

static void q8_numbers(const struct packed *p, int64_t row, int64_t column, unsigned char *to)
{
    const unsigned char *from = p->part[0].data + 4 + row * p->columns + column;
    for (int e = 0; e < p->elements; e++) {
        const float x = (float)(int8_t)from[e] * float_at(p->part[0].data);
        memcpy(to + (size_t)e * sizeof x, &x, sizeof x);
    }
}

static bool fits(enum apr_blocks kind, const struct packed *p)
{
    const float scale = float_at(p->part[0].data);
    return p->columns % ELEMENTS == 0 &&
           (kind == APR_Q4 || f32_from_f16(f16_from_f32(scale)) == scale);
}

void apr_blocks_pack(enum apr_blocks kind, struct packed *p, struct tensor *t)
{
    if (kind == APR_NONE)
        return;
    *p = (struct packed){.part = {{t->data, t->bytes, 0}},
                         .rows = t->shape[0],
                         .columns = t->shape[1],
                         .elements = t->shape[1] % ELEMENTS == 0 ? ELEMENTS : 1};
    if (fits(kind, p)) {
        p->block = kind == APR_Q4 ? q4_block : q8_block;
        t->dtype = kind == APR_Q4 ? NJ_TYPE_Q4_0 : NJ_TYPE_Q8_0;
    } else {
        p->block = kind == APR_Q4 ? q4_numbers : q8_numbers;
        p->type = kind == APR_Q4 ? "APR_Q4" : "APR_Q8";
        t->dtype = NJ_TYPE_F32;
    }
    t->packed = p;
    t->data = NULL;
    t->bytes = tensor_type_bytes(t->dtype, p->rows * p->columns);
}
