// SPDX-License-Identifier: Apache-2.0
#include "glu_fwd.cu"

template <typename T>
static __device__ __forceinline__ void swiglu_fwd(T *y, const T *gu, int N, int I)
{
    glu_fwd<T, NJ_SILU>(y, gu, N, I);
}
