// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

template <typename T>
static __device__ __forceinline__ void add(T *y, const T *a, const T *b, int64_t n)
{
    constexpr int N = vec<T>::N;
    const int64_t step = (int64_t)gridDim.x * NJ_THREADS * N;
    for (int64_t i = ((int64_t)blockIdx.x * NJ_THREADS + threadIdx.x) * N; i < n; i += step) {
        const typename vec<T>::raw a_raw = vec<T>::read(a + i, n - i);
        const typename vec<T>::raw b_raw = vec<T>::read(b + i, n - i);
        vec<T> x, z;
        x.set(a_raw);
        z.set(b_raw);
#pragma unroll
        for (int k = 0; k < N; k++)
            x.v[k] += z.v[k];
        x.store(y + i, n - i);
    }
}
