// SPDX-License-Identifier: Apache-2.0
#include "norm.cuh"

template <typename T>
static __device__ __forceinline__ void add_rmsnorm_fwd(T *y, T *s, float *rstd, const T *x,
                                                       const T *b, const T *w, int N, int C,
                                                       float eps, float offset)
{
    if (w)
        norm_rows<T, true>(y, s, rstd, x, b, norm_weights<T>{w, offset}, N, C, eps);
    else
        norm_rows<T, true>(y, s, rstd, x, b, norm_offset<T>{offset}, N, C, eps);
}
