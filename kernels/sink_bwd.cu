// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// A block has consecutive rows; its warps take the heads in turn.
template <typename T>
static __device__ __forceinline__ void sink_bwd(float *dsink_part, const T *sink, const float *lse,
                                                const float *delta, int B, int S, int H, int P)
{
    const int rows = B * S, each = (rows + P - 1) / P;
    const int first = blockIdx.x * each, end = min(first + each, rows);
    const int lane = threadIdx.x % 32;
    for (int h = threadIdx.x / 32; h < H; h += NJ_THREADS / 32) {
        const float bias = to_f32(sink[h]);
        float sum = 0;
        for (int n = first + lane; n < end; n += 32) {
            const int64_t at = ((int64_t)(n / S) * H + h) * S + n % S;
            sum -= exp2_fast((bias - lse[at]) * 1.44269504f) * delta[at];
        }
        sum = warp_sum(sum);
        if (lane == 0)
            dsink_part[(int64_t)blockIdx.x * H + h] = sum;
    }
}
