// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

#define COLUMNS 2048 // columns of a block

template <typename T>
static __device__ __forceinline__ void softcap(T *y, int M, int V, int Vs, float cap)
{
    constexpr int N = vec<T>::N;
    const int begin = blockIdx.y * COLUMNS, end = min(V, begin + COLUMNS);
    const float per_cap = 1 / cap;
    T *row = y + (int64_t)block_from_last() * Vs;
    for (int c = begin + threadIdx.x * N; c < end; c += NJ_THREADS * N) {
        vec<T> x;
        x.load(row + c, V - c);
#pragma unroll
        for (int i = 0; i < N; i++)
            x.v[i] = cap * tanhf(x.v[i] * per_cap);
        x.store(row + c, V - c);
    }
}
