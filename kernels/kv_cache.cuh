// SPDX-License-Identifier: Apache-2.0
//
// kv_cache.cuh: layout of the values of one slot and key head in the cache (base/decode.h), and the rows of a pass that
// are stored there.
#ifndef NOJIT_KV_CACHE_CUH
#define NOJIT_KV_CACHE_CUH

#include "base/decode.h"
#include "common.cuh"

// Return the offset of dim d of the value at a place.
template <int D> static __device__ __forceinline__ int64_t value_at(int place, int d)
{
    const int64_t block = place / CACHE_BLOCK;
    return (block * D + d) * CACHE_BLOCK + place % CACHE_BLOCK;
}

// Return the slot of row n; -1 where there is no row, or where the row P rows later takes its place.
static __device__ __forceinline__ int stored_slot(const int32_t *slot, int n, int N, int P)
{
    const int s = n < N ? slot[n] : -1;
    return n < N - P && slot[n + P] == s ? -1 : s;
}

#endif
