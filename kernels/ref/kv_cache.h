/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_cache.h: where the cache of one layer has what, for the references (decode.h).
 */
#ifndef NOJIT_KV_CACHE_H
#define NOJIT_KV_CACHE_H

#include "base/decode.h"
#include "ref.h"

/* Of one slot and key head: the same offset for keys and for values. */
static inline int64_t cache_at(int32_t slot, int32_t kv, int32_t K, int32_t P, int D)
{
    return ((int64_t)slot * K + kv) * P * D;
}

/* Dim d of a position's value: its offset in the values of the slot and head. */
static inline int64_t value_at(int64_t position, int d, int D)
{
    const int64_t block = position / CACHE_BLOCK;
    return (block * D + d) * CACHE_BLOCK + position % CACHE_BLOCK;
}

/* A key and a value of head kv go to a position of a slot. */
static inline void cache_put(real *k, real *v, const real *key, const real *value, int32_t slot,
                             int32_t pos, int32_t kv, int32_t K, int32_t P, int D)
{
    const int64_t at = cache_at(slot, kv, K, P, D);
    for (int d = 0; d < D; d++) {
        k[at + (int64_t)pos * D + d] = key[d];
        v[at + value_at(pos, d, D)] = value[d];
    }
}

#endif
