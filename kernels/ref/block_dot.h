/* SPDX-License-Identifier: Apache-2.0
 *
 * block_dot.h: the product of a row of quantized blocks and a row of numbers.
 */
#ifndef NOJIT_REF_BLOCK_DOT_H
#define NOJIT_REF_BLOCK_DOT_H

#include "blocks.h"

/* Return the product of row `row` of `data`, of C elements, and x. */
static inline real block_dot(int type, const int32_t *data, int64_t row, const real *x, int32_t C)
{
    int elements = 32;
    while (nj_row_bytes(type, elements) == 0)
        elements *= 2;
    const int64_t bytes = nj_row_bytes(type, elements);
    const uint8_t *at = (const uint8_t *)data + row * nj_row_bytes(type, C);
    float v[BLOCK_ELEMENTS_MOST];
    real sum = 0;
    for (int32_t c = 0; c < C; c += elements, at += bytes) {
        block_of[type](at, v);
        for (int e = 0; e < elements; e++)
            sum += x[c + e] * (real)v[e];
    }
    return sum;
}

#endif
