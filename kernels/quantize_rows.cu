// SPDX-License-Identifier: Apache-2.0
#include "quantize.cuh"

// Quantize a row that a group of WIDTH threads keeps in registers.
template <typename T, int WIDTH, int MOST>
static __device__ __forceinline__ void quantize_kept(uint8_t *q, float *scale, float *most,
                                                     const T *x, int C, bool live)
{
    constexpr int V = vec<T>::N, KEEP = MOST / V;
    const int first = threadIdx.x % WIDTH * V;
    typename vec<T>::raw keep[KEEP];
    uint32_t top = LEAST_TOP;
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        keep[k] = {};
        if (first + k * WIDTH * V < C)
            keep[k] = vec<T>::read(x + first + k * WIDTH * V);
    }
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        top = largest(vec<T>::of(keep[k]), top);
    top = group_max<WIDTH>(top);
    if (!live)
        return;
    if (first == 0)
        keep_scale(scale, most, top);
    const float inverse = inverse_of(top);
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (first + k * WIDTH * V < C)
            store_e4m3(q + first + k * WIDTH * V, vec<T>::of(keep[k]), inverse);
}

// Quantize a row that a block reads twice; the second time it comes from a cache.
template <typename T>
static __device__ __forceinline__ void quantize_long(uint8_t *q, float *scale, float *most,
                                                     const T *x, int C)
{
    constexpr int V = vec<T>::N;
    uint32_t top = LEAST_TOP;
    for (int c = threadIdx.x * V; c < C; c += NJ_THREADS * V)
        top = largest(vec<T>::of(vec<T>::read(x + c)), top);
    top = group_max<NJ_THREADS>(top);
    if (threadIdx.x == 0)
        keep_scale(scale, most, top);
    const float inverse = inverse_of(top);
    for (int c = threadIdx.x * V; c < C; c += NJ_THREADS * V)
        store_e4m3(q + c, vec<T>::of(vec<T>::read(x + c)), inverse);
}

template <typename T>
static __device__ __forceinline__ void quantize_rows(uint8_t *q, float *scale, float *most,
                                                     const T *x, int N, int C)
{
    if (C > LONGEST_KEPT) {
        const int64_t n = block_from_last(), at = n * C;
        quantize_long(q + at, scale + n, most, x + at, C);
        return;
    }
    each_norm_row(N, C, [&](auto width, int64_t n, bool live) {
        const int64_t at = n * C;
        quantize_kept<T, width.value, width.most>(q + at, scale + n, most, x + at, C, live);
    });
}
