// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// A warp reads 32 columns; warp k sums rows k, k + warps, ... and the warps add up in order.
template <typename T>
static __device__ __forceinline__ void colsum(float *dst, const float *part, int P, int C)
{
    constexpr int WARPS = NJ_THREADS / 32;
    __shared__ float sums[WARPS][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int c = blockIdx.x * 32 + lane;
    float sum = 0;
    if (c < C)
#pragma unroll 8
        for (int p = warp; p < P; p += WARPS)
            sum += part[(int64_t)p * C + c];
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && c < C) {
        sum = 0;
#pragma unroll
        for (int k = 0; k < WARPS; k++)
            sum += sums[k][lane];
        dst[c] += sum;
    }
}
