// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

template <typename T>
static __device__ __forceinline__ void grad_sumsq(float *part, const float *g, int64_t n, int P)
{
    const int64_t step = (int64_t)P * NJ_THREADS * 4, whole = n / 4 * 4;
    const int64_t begin = ((int64_t)blockIdx.x * NJ_THREADS + threadIdx.x) * 4;
    float sum[4] = {};
#pragma unroll 4
    for (int64_t i = begin; i < whole; i += step) {
        vec<float> a;
        a.load(g + i);
#pragma unroll
        for (int k = 0; k < 4; k++)
            sum[k] += a.v[k] * a.v[k];
    }
    if (blockIdx.x == 0 && whole + threadIdx.x < n) {
        const float last = g[whole + threadIdx.x];
        sum[0] += last * last;
    }
    const float total = block_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    if (threadIdx.x == 0)
        part[blockIdx.x] = total;
}
