// SPDX-License-Identifier: Apache-2.0
#include "glu_bwd.cu"

template <typename T>
static __device__ __forceinline__ void swiglu_bwd(T *dgu, T *y, const T *dy, const T *gu, int N,
                                                  int I)
{
    glu_bwd<T, NJ_SILU>(dgu, y, dy, gu, N, I);
}
