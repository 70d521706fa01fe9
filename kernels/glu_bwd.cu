// SPDX-License-Identifier: Apache-2.0
#include "glu.cuh"

// Compute the gradient of 2048 columns of row n in block (n, y). A thread reads all its inputs before it writes, so dgu
// may equal gu and y may equal dy.
template <typename T, int ACT>
static __device__ __forceinline__ void glu_bwd(T *dgu, T *y, const T *dy, const T *gu, int N, int I)
{
    constexpr int V = vec<T>::N;
    const int64_t n = block_from_last();
    const int begin = blockIdx.y * 2048, end = min(I, begin + 2048);
    const int64_t gate = n * 2 * I, up = gate + I;
    for (int c = begin + threadIdx.x * V; c < end; c += NJ_THREADS * V) {
        vec<T> d, g, u;
        d.load(dy + n * I + c);
        g.load(gu + gate + c);
        u.load(gu + up + c);
#pragma unroll
        for (int i = 0; i < V; i++) {
            const float x = g.v[i], z = activation<ACT>::weight(x);
            const float dy_i = d.v[i];
            d.v[i] = x * z * u.v[i];
            g.v[i] = activation<ACT>::backward(dy_i * u.v[i], x, z);
            u.v[i] = dy_i * x * z;
        }
        d.store(y + n * I + c);
        g.store(dgu + gate + c);
        u.store(dgu + up + c);
    }
}
