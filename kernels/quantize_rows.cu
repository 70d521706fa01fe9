// SPDX-License-Identifier: Apache-2.0
#include "quantize.cuh"

// A block a row, which is read twice; the second time it comes from a cache.
template <typename T>
static __device__ __forceinline__ void quantize_rows(uint8_t *q, float *scale, float *most,
                                                     const T *x, int N, int C)
{
    constexpr int V = vec<T>::N;
    const int64_t n = blockIdx.x;
    const T *row = x + n * C;
    uint32_t top = LEAST_TOP;
    for (int c = threadIdx.x * V; c < C; c += NJ_THREADS * V) {
        vec<T> a;
        a.load(row + c);
        top = largest(a, top);
    }
    top = group_max<NJ_THREADS>(top);
    if (threadIdx.x == 0)
        keep_scale(scale + n, most, top);
    const float inverse = inverse_of(top);
    for (int c = threadIdx.x * V; c < C; c += NJ_THREADS * V) {
        vec<T> a;
        a.load(row + c);
        store_e4m3(q + n * C + c, a, inverse);
    }
}
