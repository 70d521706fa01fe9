// SPDX-License-Identifier: Apache-2.0
#include "quantize_norm.cuh"

template <typename T>
static __device__ __forceinline__ void rmsnorm_quantize(uint8_t *q, float *scale, float *top,
                                                        float *rstd, const T *x, const T *w, int N,
                                                        int C, float eps, float offset)
{
    quantize_norms<T, false>({q, scale, top, nullptr, rstd}, x, (const T *)nullptr, {w, offset}, N,
                             C, eps);
}
