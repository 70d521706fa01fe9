/* SPDX-License-Identifier: Apache-2.0
 *
 * decode_part.h: code shared by the references of attn_decode and attn_decode_q8.
 */
#ifndef NOJIT_DECODE_PART_H
#define NOJIT_DECODE_PART_H

#include "attn_tile.h"
#include "base/decode.h"
#include "rope.h"

#include <stdbool.h>

enum { DECODE_D_MAX = 256 };

/* The new row of a sequence, as the GEMM of queries, keys and values leaves it. If inv_freq is NULL, RoPE has been
 * applied already. */
struct new_row {
    const real *x, *bias, *inv_freq;
    float amplitude;
    int32_t pos;
    int D;
};

/* Copy head number `head` of the row, with its bias; a query or key head is rotated as in rope_fwd. */
static inline void new_head(real *to, const struct new_row *row, int64_t head, bool rotated)
{
    const int half = row->D / 2;
    for (int64_t d = 0, c = head * row->D; d < row->D; d++, c++)
        to[d] = row->bias ? row->x[c] + row->bias[c] : row->x[c];
    for (int i = 0; i < half && rotated && row->inv_freq; i++) {
        real co, si;
        rope_turn(&co, &si, row->pos, row->inv_freq[i], row->amplitude);
        rope_pair(to + i, to + i + half, co, si);
    }
}

/* Return the first position that a row sees. */
static inline int32_t first_position(int32_t pos, int32_t window)
{
    return window > 0 ? max_i32(0, pos - window + 1) : 0;
}

/* The keys of a chunk, from the block of values on that holds the row's first key. The row does not see the first
 * `unseen` of them. */
struct chunk_keys {
    int32_t first, count, unseen;
};

static inline struct chunk_keys chunk_keys(int32_t chunk, int32_t pos, int32_t window)
{
    const int32_t oldest = first_position(pos, window);
    const int32_t first = max_i32(chunk * DECODE_CHUNK, oldest / CACHE_BLOCK * CACHE_BLOCK);
    return (struct chunk_keys){
        .first = first,
        .count = min_i32((chunk + 1) * DECODE_CHUNK, pos + 1) - first,
        .unseen = max_i32(0, oldest - first),
    };
}

/* Turn the scores of a chunk into exp(score - largest), 0 for keys that are not seen, and store the two statistics of
 * the partial result after its D values. */
static inline void part_softmax(real *part, int D, real *s, struct chunk_keys keys)
{
    const real log2_e = (real)1.4426950408889634;
    real top = -(real)INFINITY, sum = 0;
    for (int j = keys.unseen; j < keys.count; j++)
        if (!(s[j] <= top)) /* true for NaN, too */
            top = s[j];
    for (int j = 0; j < keys.unseen; j++)
        s[j] = 0;
    for (int j = keys.unseen; j < keys.count; j++) {
        s[j] = exp(s[j] - top);
        sum += s[j];
    }
    part[D + DECODE_TOP] = top * log2_e;
    part[D + DECODE_SUM] = sum;
}

/* Add the next chunk to the sum of those before it. */
static inline void part_add(real *total, const real *part, int D)
{
    const real was = total[D + DECODE_TOP], top = part[D + DECODE_TOP];
    const real next = top <= was ? was : top; /* NaN becomes the maximum, too */
    const real old = exp2(was - next), its = exp2(top - next);
    for (int d = 0; d < D; d++)
        total[d] = total[d] * old + part[d] * its;
    total[D + DECODE_SUM] = total[D + DECODE_SUM] * old + part[D + DECODE_SUM] * its;
    total[D + DECODE_TOP] = next;
}

/* Divide by the sum of all weights; with a sink, the score of a key whose value is 0, by that and the sink's. */
static inline void part_finish(real *o, const real *total, int D, const real *sink)
{
    const real log2_e = (real)1.4426950408889634;
    real sum = total[D + DECODE_SUM];
    if (sink)
        sum += exp2(*sink * log2_e - total[D + DECODE_TOP]);
    for (int d = 0; d < D; d++)
        o[d] = total[d] / sum;
}

#endif
