// SPDX-License-Identifier: Apache-2.0
#include "gemv_blocks.cuh"

// A warp takes a channel of y, and the rows of the experts for it one after another.
template <typename T, int TYPE>
static __device__ __forceinline__ void
expert_gemv_down_blocks(T *y, const T *act, const int *w, const T *bias, const int *chosen,
                        const float *weight, int N, int J, int E, int I, int C)
{
    constexpr int UNROLL = 4;
    const int c = blockIdx.x * (NJ_THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int chunks = I / 8;
    const int64_t n = blockIdx.y;
    block<TYPE>::begin();
    if (c >= C)
        return;
    float sum = 0;
    for (int j = 0; j < J; j++) {
        const int64_t pair = n * J + j;
        const int e = chosen[pair];
        if (e < 0)
            continue;
        const int64_t row = (int64_t)e * C + c;
        float one = bias && lane == 0 ? to_f32(bias[row]) : 0;
        for (int at = lane; at < chunks; at += UNROLL * 32) {
            block_chunks<TYPE, UNROLL> b;
            b.fetch(w, row, at, I);
#pragma unroll
            for (int k = 0; k < UNROLL; k++)
                if (at + 32 * k < chunks) {
                    vec<T> a;
                    a.load(act + pair * I + (at + 32 * k) * 8);
                    one += b.dot(k, a.v);
                }
        }
        sum += weight[pair] * one;
    }
    sum = warp_sum(sum);
    T *const to = y + n * C + c;
    if (lane == 0)
        *to = from_f32<T>(to_f32(*to) + sum);
}
