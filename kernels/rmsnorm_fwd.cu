// SPDX-License-Identifier: Apache-2.0
#include "norm.cuh"

template <typename T>
static __device__ __forceinline__ void rmsnorm_fwd(T *y, float *rstd, const T *x, const T *w, int N,
                                                   int C, float eps, float offset)
{
    T *const no_sum = nullptr;
    const T *const no_branch = nullptr;
    if (w)
        norm_rows<T, false>(y, no_sum, rstd, x, no_branch, norm_weights<T>{w, offset}, N, C, eps);
    else
        norm_rows<T, false>(y, no_sum, rstd, x, no_branch, norm_offset<T>{offset}, N, C, eps);
}
