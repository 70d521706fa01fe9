// SPDX-License-Identifier: Apache-2.0
#include "ptx.cuh"

#include "base/route.h"

// The experts of a lane are lane, lane + 32, ...
constexpr int EACH = NJ_EXPERTS_MAX / 32;

// A warp adds up every WARPS-th row of the block, and the block the sums of its warps.
template <typename T>
static __device__ __forceinline__ void expert_shares(float *part, const float *logits,
                                                     const int *chosen, const int *keep, int N,
                                                     int E, int J, int P)
{
    constexpr int WARPS = NJ_THREADS / 32;
    extern __shared__ float sums[]; // [WARPS, 2 E]
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float prob[EACH] = {}, count[EACH] = {};
    for (int64_t n = blockIdx.x + (int64_t)warp * P; n < N; n += (int64_t)WARPS * P) {
        if (keep && keep[n] < 0)
            continue;
        float x[EACH], top = -INFINITY, sum = 0;
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int e = lane + 32 * i;
            x[i] = e < E ? logits[n * E + e] : -INFINITY;
            top = fmaxf(top, x[i]);
        }
        top = warp_max(top);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            x[i] = exp2_fast((x[i] - top) * LOG2_E);
            sum += x[i];
        }
        const float share = 1 / warp_sum(sum);
        const int its = lane < J ? chosen[n * J + lane] : -1;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            prob[i] += x[i] * share;
        for (int j = 0; j < J; j++) {
            const int e = __shfl_sync(0xffffffffu, its, j);
#pragma unroll
            for (int i = 0; i < EACH; i++)
                count[i] += e == lane + 32 * i;
        }
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int e = lane + 32 * i;
        if (e < E) {
            sums[warp * 2 * E + e] = prob[i];
            sums[warp * 2 * E + E + e] = count[i];
        }
    }
    __syncthreads();
    for (int e = threadIdx.x; e < 2 * E; e += NJ_THREADS) {
        float sum = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            sum += sums[w * 2 * E + e];
        part[(int64_t)blockIdx.x * 2 * E + e] = sum;
    }
}
