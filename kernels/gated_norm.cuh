// SPDX-License-Identifier: Apache-2.0
//
// gated_norm.cuh: a head of D elements for normalization, in a group of threads with 16 bytes each.
#ifndef NOJIT_GATED_NORM_CUH
#define NOJIT_GATED_NORM_CUH

#include "common.cuh"

template <typename T, int D> struct head_group {
    static constexpr int V = vec<T>::N, WIDTH = D / V, GROUPS = NJ_THREADS / WIDTH;

    static __device__ __forceinline__ int number() { return threadIdx.x / WIDTH; }
    static __device__ __forceinline__ int column() { return threadIdx.x % WIDTH * V; }
    // Return the sum over the group. The whole warp must call it.
    static __device__ __forceinline__ float sum(float x)
    {
#pragma unroll
        for (int d = WIDTH / 2; d > 0; d >>= 1)
            x += __shfl_xor_sync(0xffffffffu, x, d);
        return x;
    }
    // Return the reciprocal root of the head of which the thread has x.
    static __device__ __forceinline__ float root(const vec<T> &x, float eps)
    {
        float squares = 0;
#pragma unroll
        for (int i = 0; i < V; i++)
            squares = fmaf(x.v[i], x.v[i], squares);
        return rsqrtf(fmaf(sum(squares), 1.0f / D, eps));
    }
};

#endif
