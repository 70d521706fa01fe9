// SPDX-License-Identifier: Apache-2.0
#include "glu_clamped.cuh"

// Compute 2048 columns of row p in block (p, y).
template <typename T>
static __device__ __forceinline__ void expert_glu_clamped(T *act, const T *gu, int P, int I,
                                                          float limit, float alpha)
{
    constexpr int V = vec<T>::N;
    const int64_t p = block_from_last();
    const int begin = blockIdx.y * 2048, end = min(I, begin + 2048);
    const T *gate = gu + p * 2 * I;
    for (int c = begin + threadIdx.x * V; c < end; c += NJ_THREADS * V) {
        vec<T> g, u;
        g.load(gate + c);
        u.load(gate + I + c);
#pragma unroll
        for (int i = 0; i < V; i++)
            g.v[i] = glu_clamped(g.v[i], u.v[i], limit, alpha);
        g.store(act + p * I + c);
    }
}
