// SPDX-License-Identifier: Apache-2.0
//
// heads.cuh: heads for normalization and RoPE. A warp takes a row, and each group of its threads a head. A thread holds
// V elements of the lower half of a head and their partners in the upper half. It has the same columns of each of its
// heads, so it computes their sines once per row.
#ifndef NOJIT_HEADS_CUH
#define NOJIT_HEADS_CUH

#include "rope.cuh"

template <typename T> struct head_share {
    static constexpr int V = vec<T>::N;
    static constexpr int WARPS = NJ_THREADS / 32;
    int width;  // threads of a group, a power of two
    int group;  // number of the thread's group within the warp
    int groups; // groups of the warp
    bool used;  // whether the thread has elements: only D / (2 V) threads of a group do
    int column; // its first element in the lower half; 0 if it has none

    __device__ __forceinline__ explicit head_share(int D)
    {
        const int pieces = D / (2 * V);
        int bits = 2;
        while (1 << bits < pieces)
            bits++;
        width = 1 << bits;
        const int lane = threadIdx.x & (width - 1);
        group = threadIdx.x % 32 >> bits;
        groups = 32 >> bits;
        used = lane < pieces;
        column = used ? lane * V : 0;
    }
    // Sum over the group, the same in each of its threads. The whole warp must call it.
    template <int COUNT> __device__ __forceinline__ void sum(float (&x)[COUNT]) const
    {
        for (int d = width / 2; d > 0; d >>= 1)
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                x[i] += __shfl_xor_sync(0xffffffffu, x[i], d);
    }
};

// A thread's gains of its elements of a head: offset + w, or the offset alone if w is NULL. They are kept as they were
// read, since registers are scarce.
template <typename T> struct head_gain {
    static constexpr int V = vec<T>::N;
    typename vec<T>::raw lo, hi;

    __device__ __forceinline__ void read(const T *w, int column, int half)
    {
        lo = hi = {};
        if (w) {
            lo = vec<T>::read(w + column);
            hi = vec<T>::read(w + column + half);
        }
    }
    __device__ __forceinline__ void apply(float (&x_lo)[V], float (&x_hi)[V], float offset) const
    {
        const vec<T> w_lo = vec<T>::of(lo), w_hi = vec<T>::of(hi);
#pragma unroll
        for (int i = 0; i < V; i++) {
            x_lo[i] *= offset + w_lo.v[i];
            x_hi[i] *= offset + w_hi.v[i];
        }
    }
};

#endif
