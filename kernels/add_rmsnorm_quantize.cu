// SPDX-License-Identifier: Apache-2.0
#include "quantize_norm.cuh"

template <typename T>
static __device__ __forceinline__ void
add_rmsnorm_quantize(uint8_t *q, float *scale, T *s, float *rstd, const T *x, const T *b,
                     const T *w, int N, int C, float eps, float offset)
{
    quantize_norms<T, true>({q, scale, nullptr, s, rstd}, x, b, {w, offset}, N, C, eps);
}
