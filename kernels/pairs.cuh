// SPDX-License-Identifier: Apache-2.0
//
// pairs.cuh: two warps that share 16 rows, where one warp does not have the registers for them: warp w of the lower
// half of a block is the first of pair w, warp w of the upper half the second. Each computes one of two products with
// the same layout (mma.cuh), and they exchange these.
#ifndef NOJIT_PAIRS_CUH
#define NOJIT_PAIRS_CUH

#include "mma.cuh"

constexpr int PAIRS = NJ_THREADS / 64;

// Return the number of the warp's pair.
static __device__ __forceinline__ int pair_of_block()
{
    return threadIdx.x / 32 % PAIRS;
}
// Return 0 in the first warp of a pair, 1 in the second.
static __device__ __forceinline__ int place_in_pair()
{
    return threadIdx.x / 32 / PAIRS;
}

// N values of each lane, in shared memory: those of all first warps, then those of all second ones.
template <int N> struct pair_exchange {
    float *values;

    static __device__ __forceinline__ int at(int place)
    {
        return (place * PAIRS + pair_of_block()) * N * 32 + lane_id();
    }
    // Leave values for the other warp of the pair, which may read them after a barrier.
    __device__ __forceinline__ void put(const float (&s)[N / 4][4]) const
    {
        float *mine = values + at(place_in_pair());
#pragma unroll
        for (int n = 0; n < N; n++)
            mine[n * 32] = s[n / 4][n % 4];
    }
    // Multiply by the values of the other warp.
    __device__ __forceinline__ void multiply(float (&s)[N / 4][4]) const
    {
        const float *its = values + at(1 - place_in_pair());
#pragma unroll
        for (int n = 0; n < N; n++)
            s[n / 4][n % 4] *= its[n * 32];
    }
};

#endif
