/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_cache.h: layout of the cache of one layer, for the references (base/decode.h).
 */
#ifndef NOJIT_KV_CACHE_H
#define NOJIT_KV_CACHE_H

#include "base/decode.h"
#include "ref.h"

#include <stdbool.h>

/* Return the offset of one slot and key head, the same for keys and values. */
static inline int64_t cache_at(int32_t slot, int32_t kv, int32_t K, int32_t P, int D)
{
    return ((int64_t)slot * K + kv) * P * D;
}

/* Return the offset of dim d of a position's value among the values of the slot and head. */
static inline int64_t value_at(int64_t position, int d, int D)
{
    const int64_t block = position / CACHE_BLOCK;
    return (block * D + d) * CACHE_BLOCK + position % CACHE_BLOCK;
}

/* Return whether row n of a pass is stored: it has a slot, and no row P rows later takes its place. */
static inline bool is_stored(const int32_t *slot, int32_t n, int32_t N, int32_t P)
{
    return slot[n] >= 0 && !(n < N - P && slot[n + P] == slot[n]);
}

/* Store a key and a value of head kv at the place of a position of a slot. */
static inline void cache_put(real *k, real *v, const real *key, const real *value, int32_t slot,
                             int32_t pos, int32_t kv, int32_t K, int32_t P, int D)
{
    const int64_t at = cache_at(slot, kv, K, P, D), place = pos % P;
    for (int d = 0; d < D; d++) {
        k[at + place * D + d] = key[d];
        v[at + value_at(place, d, D)] = value[d];
    }
}

#endif
