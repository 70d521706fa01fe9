// SPDX-License-Identifier: Apache-2.0
#include "glu_quantize.cu"

template <typename T>
static __device__ __forceinline__ void swiglu_quantize(uint8_t *q, float *scale, const T *gu, int N,
                                                       int I)
{
    glu_quantize<T, NJ_SILU>(q, scale, gu, N, I);
}
