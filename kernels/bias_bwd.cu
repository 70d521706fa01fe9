// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Block (x, p) sums rows p, p + P, ... of 1024 columns; a thread owns what one access covers.
template <typename T>
static __device__ __forceinline__ void bias_bwd(float *part, const T *dy, int N, int C, int P)
{
    constexpr int V = vec<T>::N;
    const int64_t p = blockIdx.y;
    const int begin = blockIdx.x * 1024, end = min(C, begin + 1024);
    for (int c = begin + threadIdx.x * V; c < end; c += NJ_THREADS * V) {
        float sum[V] = {};
#pragma unroll 4
        for (int64_t n = p; n < N; n += P) {
            vec<T> g;
            g.load(dy + n * C + c);
#pragma unroll
            for (int i = 0; i < V; i++)
                sum[i] += g.v[i];
        }
#pragma unroll
        for (int i = 0; i < V; i += 4)
            *reinterpret_cast<float4 *>(part + p * C + c + i) =
                make_float4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]);
    }
}
