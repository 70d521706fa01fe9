// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// A block has a row.
template <typename T>
static __device__ __forceinline__ void row_gate(T *y, const T *d, const T *x, const T *w, int N,
                                                int I, int C)
{
    constexpr int V = vec<T>::N;
    const int64_t n = block_from_last();
    float sum = 0;
    for (int c = threadIdx.x * V; c < C; c += NJ_THREADS * V) {
        vec<T> a, b;
        a.load(x + n * C + c);
        b.load(w + c);
#pragma unroll
        for (int i = 0; i < V; i++)
            sum += a.v[i] * b.v[i];
    }
    const float gate = sigmoid(block_sum(sum));
    for (int k = threadIdx.x * V; k < I; k += NJ_THREADS * V) {
        vec<T> out;
        out.load(d + n * I + k);
#pragma unroll
        for (int i = 0; i < V; i++)
            out.v[i] *= gate;
        out.store(y + n * I + k);
    }
}
