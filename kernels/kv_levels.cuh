// SPDX-License-Identifier: Apache-2.0
//
// kv_levels.cuh: rounding of cache elements to bytes, for kv_store_q8 and attn_decode_q8. Both give the same result as
// the references.
#ifndef NOJIT_KV_LEVELS_CUH
#define NOJIT_KV_LEVELS_CUH

#include "base/decode.h"
#include "common.cuh"

// Levels of elements whose largest magnitude is `most`.
struct kv_levels {
    float scale, inverse;

    __device__ __forceinline__ explicit kv_levels(float most)
        : scale(most / KV_LEVELS), inverse(most > 0 ? KV_LEVELS / most : 0)
    {
    }
    __device__ __forceinline__ int level(float x) const { return __float2int_rn(x * inverse); }
    // Return four neighbours as the bytes of a word.
    __device__ __forceinline__ uint32_t word(const float *x) const
    {
        return __byte_perm(__byte_perm(level(x[0]), level(x[1]), 0x0040),
                           __byte_perm(level(x[2]), level(x[3]), 0x0040), 0x5410);
    }
};

template <int N> static __device__ __forceinline__ float most_of(const float (&x)[N])
{
    float most = 0;
#pragma unroll
    for (int i = 0; i < N; i++)
        most = fmaxf(most, fabsf(x[i]));
    return most;
}

#endif
