// SPDX-License-Identifier: Apache-2.0
#include "norm.cuh"

template <typename T>
static __device__ __forceinline__ void rmsnorm_fwd(T *y, float *rstd, const T *x, const T *w, int N,
                                                   int C, float eps)
{
    norm_rows<T, false>(y, (T *)nullptr, rstd, x, (const T *)nullptr, w, N, C, eps);
}
