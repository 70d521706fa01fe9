// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

template <typename T>
static __device__ __forceinline__ void loss_reduce(float *sums, const float *kd, const float *ce,
                                                   const float *entropy, const float *agree, int M)
{
    float sum[4] = {};
#pragma unroll 4
    for (int m = threadIdx.x; m < M; m += NJ_THREADS) {
        sum[0] += kd[m];
        sum[1] += ce[m];
        sum[2] += entropy[m];
        sum[3] += agree[m];
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float total = block_sum(sum[i]);
        if (threadIdx.x == 0)
            sums[i] += total;
    }
}
