// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

template <typename T>
static __device__ __forceinline__ void softcap(T *y, const T *x, int64_t n, float cap)
{
    const int64_t i = (int64_t)blockIdx.x * NJ_THREADS + threadIdx.x;
    if (i < n)
        y[i] = from_f32<T>(cap * tanhf(to_f32(x[i]) / cap));
}
