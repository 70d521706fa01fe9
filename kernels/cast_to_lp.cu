// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

template <typename T>
static __device__ __forceinline__ void cast_to_lp(T *dst, const float *src, int64_t n)
{
    constexpr int STEP = NJ_THREADS * 4; // two accesses per thread in flight for each array
    const int64_t step = (int64_t)gridDim.x * STEP * 2;
    for (int64_t i = (int64_t)blockIdx.x * STEP * 2 + threadIdx.x * 4; i < n; i += step) {
        typename vec<float, 4>::raw raw[2];
#pragma unroll
        for (int k = 0; k < 2; k++)
            raw[k] = vec<float, 4>::read(src + i + k * STEP, n - i - k * STEP);
#pragma unroll
        for (int k = 0; k < 2; k++) {
            vec<float, 4> x;
            vec<T, 4> y;
            x.set(raw[k]);
#pragma unroll
            for (int j = 0; j < 4; j++)
                y.v[j] = x.v[j];
            y.store(dst + i + k * STEP, n - i - k * STEP);
        }
    }
}
