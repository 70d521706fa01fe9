/* SPDX-License-Identifier: Apache-2.0
 *
 * decode_part.h: what the references of attn_decode and attn_decode_q8 share.
 */
#ifndef NOJIT_DECODE_PART_H
#define NOJIT_DECODE_PART_H

#include "attn_tile.h"
#include "decode.h"

enum { DECODE_D_MAX = 128 };

/* Scores of a chunk become exp(score - largest); both statistics of the part behind its D values. */
static inline void part_softmax(real *part, int D, real *s, int keys)
{
    const real log2_e = (real)1.4426950408889634;
    real top = -(real)INFINITY, sum = 0;
    for (int j = 0; j < keys; j++)
        if (!(s[j] <= top)) /* takes a NaN, too */
            top = s[j];
    for (int j = 0; j < keys; j++) {
        s[j] = exp(s[j] - top);
        sum += s[j];
    }
    part[D + DECODE_TOP] = top * log2_e;
    part[D + DECODE_SUM] = sum;
}

/* Where the part of chunk c of head i of all rows goes: `one`, if there is no other. */
static inline real *part_at(real *part, real *one, int32_t c, int64_t i, int64_t heads, int32_t C,
                            int D)
{
    return C == 1 ? one : part + (c * heads + i) * (D + DECODE_STATS);
}

/* With one chunk, the output. */
static inline void part_finish(real *o, const real *one, int D)
{
    for (int d = 0; d < D; d++)
        o[d] = one[d] / one[D + DECODE_SUM];
}

#endif
