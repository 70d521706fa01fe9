/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_cache.h: layout of the cache of one layer, for the references (base/decode.h).
 */
#ifndef NOJIT_KV_CACHE_H
#define NOJIT_KV_CACHE_H

#include "base/decode.h"
#include "ref.h"

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

/* Store a key and a value of head kv at a position of a slot. */
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
