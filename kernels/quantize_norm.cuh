// SPDX-License-Identifier: Apache-2.0
//
// quantize_norm.cuh: normalized rows as E4M3, each with its scale.
#ifndef NOJIT_QUANTIZE_NORM_CUH
#define NOJIT_QUANTIZE_NORM_CUH

#include "quantize.cuh"

// Output arrays. s is NULL if there is no sum, top is NULL if it is not wanted.
template <typename T> struct normed_rows {
    uint8_t *q;
    float *scale, *top;
    T *s;
    float *rstd;
};

template <typename T, int WIDTH, int MOST, bool ADD>
static __device__ __forceinline__ void
quantize_normed(const normed_rows<T> &to, int64_t n, const T *x, const T *b,
                const norm_weights<T> &w, int C, float eps, bool live)
{
    const int64_t at = n * C;
    norm_share<T, WIDTH, MOST> row;
    const float r =
        row.template read<ADD>(ADD ? to.s + at : to.s, x + at, ADD ? b + at : b, w, C, eps, live);
    uint32_t top = LEAST_TOP;
#pragma unroll
    for (int k = 0; k < row.KEEP; k++)
        if (row.column(k) < C)
            top = largest(row.normed(k, r, w), top);
    top = group_max<WIDTH>(top);
    if (!live)
        return;
    if (threadIdx.x % WIDTH == 0) {
        keep_scale(to.scale + n, to.top, top);
        to.rstd[n] = r;
    }
    const float inverse = inverse_of(top);
    uint8_t *q = to.q + at;
#pragma unroll
    for (int k = 0; k < row.KEEP; k++)
        if (row.column(k) < C)
            store_e4m3(q + row.column(k), row.normed(k, r, w), inverse);
}

template <typename T, bool ADD>
static __device__ __forceinline__ void quantize_norms(const normed_rows<T> &to, const T *x,
                                                      const T *b, const norm_weights<T> &w, int N,
                                                      int C, float eps)
{
    each_norm_row(N, C, [&](auto width, int64_t n, bool live) {
        quantize_normed<T, width.value, width.most, ADD>(to, n, x, b, w, C, eps, live);
    });
}

#endif
