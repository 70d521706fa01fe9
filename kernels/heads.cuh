// SPDX-License-Identifier: Apache-2.0
//
// heads.cuh: normalised and rotated heads belong to groups of threads within a warp; a thread holds
// V elements of the lower half of a head and their partners in the upper half.
#ifndef NOJIT_HEADS_CUH
#define NOJIT_HEADS_CUH

#include "rope.cuh"

template <typename T> struct head_share {
    static constexpr int V = vec<T>::N;
    int width;  // threads of a group, a power of two
    int group;  // which group of the block the thread is in
    int groups; // of the block
    bool used;  // the thread has elements: only D / (2 V) of a group have
    int lo, hi; // first element of the thread in each half; 0 and D/2 where it has none

    __device__ __forceinline__ explicit head_share(int D)
    {
        const int pieces = D / (2 * V);
        width = 4;
        while (width < pieces)
            width *= 2;
        const int lane = threadIdx.x % width;
        group = threadIdx.x / width;
        groups = NJ_THREADS / width;
        used = lane < pieces;
        lo = used ? lane * V : 0;
        hi = lo + D / 2;
    }
    // Sum over the group, the same in each of its threads. The whole warp must call it.
    __device__ __forceinline__ float sum(float x) const
    {
        for (int d = width / 2; d > 0; d >>= 1)
            x += __shfl_xor_sync(0xffffffffu, x, d);
        return x;
    }
};

#endif
