// SPDX-License-Identifier: Apache-2.0
//
// kv_cache.cuh: layout of the values of one slot and key head in the cache (base/decode.h).
#ifndef NOJIT_KV_CACHE_CUH
#define NOJIT_KV_CACHE_CUH

#include "base/decode.h"
#include "common.cuh"

// Return the offset of dim d of a position's value.
template <int D> static __device__ __forceinline__ int64_t value_at(int position, int d)
{
    const int64_t block = position / CACHE_BLOCK;
    return (block * D + d) * CACHE_BLOCK + position % CACHE_BLOCK;
}

#endif
