// SPDX-License-Identifier: Apache-2.0
#include "norm.cuh"

// Compute one row; without y only the sum.
template <typename T, int WIDTH, int MOST, typename G, typename W>
static __device__ __forceinline__ void
norm_add_norm_row(T *y, T *s, float *rstd, float *b_rstd, const T *x, const T *b,
                  const G &branch_gain, const W &gain, int C, float eps, float eps_b, bool live)
{
    using share = norm_share<T, WIDTH, MOST>;
    T *const no_sum = nullptr;
    const T *const no_branch = nullptr;
    share branch, row;
#pragma unroll
    for (int k = 0; k < row.KEEP; k++) {
        row.keep[k] = {};
        if (row.column(k) < C)
            row.keep[k] = vec<T>::read(x + row.column(k));
    }
    const float q = branch.template read<false>(no_sum, b, no_branch, branch_gain, C, eps_b, live);
    if (live && threadIdx.x % WIDTH == 0)
        *b_rstd = q;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < row.KEEP; k++) {
        if (row.column(k) >= C)
            continue;
        hold(row.keep[k]);
        vec<T> a = vec<T>::of(row.keep[k]);
        const vec<T> normed = branch.normed(k, q, branch_gain);
#pragma unroll
        for (int i = 0; i < row.V; i++)
            a.v[i] += normed.v[i];
        if (live)
            a.store(s + row.column(k));
        row.keep[k] = a.bits();
        a.set(row.keep[k]);
#pragma unroll
        for (int i = 0; i < row.V; i++)
            sum += a.v[i] * a.v[i];
    }
    if (!y) // the same for all threads
        return;
    const float r = row.root(sum, gain, C, eps);
    if (live)
        row.store(y, rstd, r, gain, C);
}

template <typename T>
static __device__ __forceinline__ void
norm_add_norm_fwd(T *y, T *s, float *rstd, float *b_rstd, const T *x, const T *b, const T *g,
                  const T *w, int N, int C, float eps, float eps_b, float offset, float offset_b)
{
    const norm_weights<T> branch_gain = norm_weights<T>{g, offset_b};
    const auto rows = [&](const auto &gain) {
        each_norm_row(N, C, [&](auto width, int64_t n, bool live) {
            const int64_t at = n * C;
            norm_add_norm_row<T, width.value, width.most>(y ? y + at : y, s + at, rstd + n,
                                                          b_rstd + n, x + at, b + at, branch_gain,
                                                          gain, C, eps, eps_b, live);
        });
    };
    if (w)
        rows(norm_weights<T>{w, offset});
    else
        rows(norm_offset<T>{offset});
}
