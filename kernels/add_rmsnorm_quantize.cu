// SPDX-License-Identifier: Apache-2.0
#include "quantize.cuh"

template <typename T, int WIDTH, int MOST>
static __device__ __forceinline__ void quantize_normed(uint8_t *q, float *scale, T *s, const T *x,
                                                       const T *b, const T *w, int C, float eps,
                                                       bool live)
{
    norm_share<T, WIDTH, MOST> row;
    const float r = row.template read<true>(s, x, b, w, C, eps, live);
    uint32_t top = LEAST_TOP;
#pragma unroll
    for (int k = 0; k < row.KEEP; k++)
        if (row.column(k) < C)
            top = largest(row.normed(k, r, w), top);
    top = group_max<WIDTH>(top);
    if (!live)
        return;
    if (threadIdx.x % WIDTH == 0)
        *scale = scale_of(top);
    const float inverse = inverse_of(top);
#pragma unroll
    for (int k = 0; k < row.KEEP; k++)
        if (row.column(k) < C)
            store_e4m3(q + row.column(k), row.normed(k, r, w), inverse);
}

template <typename T>
static __device__ __forceinline__ void add_rmsnorm_quantize(uint8_t *q, float *scale, T *s,
                                                            const T *x, const T *b, const T *w,
                                                            int N, int C, float eps)
{
    each_norm_row(N, C, [&](auto width, int64_t n, bool live) {
        const int64_t at = n * C;
        quantize_normed<T, width.value, width.most>(q + at, scale + n, s + at, x + at, b + at, w, C,
                                                    eps, live);
    });
}
