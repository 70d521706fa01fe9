// SPDX-License-Identifier: Apache-2.0
//
// kv_cache.cuh: where a cache has the values of one slot and key head (decode.h).
#ifndef NOJIT_KV_CACHE_CUH
#define NOJIT_KV_CACHE_CUH

#include "base/decode.h"
#include "common.cuh"

// Dim d of a position's value: its offset there.
template <int D> static __device__ __forceinline__ int64_t value_at(int position, int d)
{
    const int64_t block = position / CACHE_BLOCK;
    return (block * D + d) * CACHE_BLOCK + position % CACHE_BLOCK;
}

#endif
