// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Compute 2048 columns of row n in block (n, y).
template <typename T>
static __device__ __forceinline__ void gate_fwd(T *y, const T *o, const T *g, int N, int C, int D)
{
    constexpr int V = vec<T>::N;
    const int64_t n = block_from_last(), at = n * C;
    const int begin = blockIdx.y * 2048, end = min(C, begin + 2048);
    g += n * (C / D);
    for (int c = begin + threadIdx.x * V; c < end; c += NJ_THREADS * V) {
        vec<T> x;
        x.load(o + at + c);
        if (D == 1) {
            vec<T> gate;
            gate.load(g + c);
#pragma unroll
            for (int i = 0; i < V; i++)
                x.v[i] *= sigmoid(gate.v[i]);
        } else {
            const float part = sigmoid(to_f32(g[c / D]));
#pragma unroll
            for (int i = 0; i < V; i++)
                x.v[i] *= part;
        }
        x.store(y + at + c);
    }
}
