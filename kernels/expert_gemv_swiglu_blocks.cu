// SPDX-License-Identifier: Apache-2.0
#include "gemv_blocks.cuh"
#include "glu_clamped.cuh"

// A warp takes a row of an expert's gate and the same row of its up.
template <typename T, int TYPE>
static __device__ __forceinline__ void
expert_gemv_swiglu_blocks(T *act, const T *x, const int *gate, const int *up, const T *bias,
                          const int *chosen, int N, int J, int E, int I, int C, float limit,
                          float alpha)
{
    constexpr int UNROLL = 4;
    const int i = blockIdx.x * (NJ_THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int pair = blockIdx.y, e = chosen[pair], chunks = C / 8;
    block<TYPE>::begin();
    if (i >= I)
        return;
    T *const out = act + (int64_t)pair * I + i;
    if (e < 0) {
        if (lane == 0)
            *out = from_f32<T>(0);
        return;
    }
    const int64_t row = (int64_t)e * I + i;
    const T *const mine = x + pair / J * (int64_t)C;
    float gate_sum = 0, up_sum = 0;
    for (int at = lane; at < chunks; at += UNROLL * 32) {
        block_chunks<TYPE, UNROLL> g, u;
        g.fetch(gate, row, at, C);
        u.fetch(up, row, at, C);
#pragma unroll
        for (int k = 0; k < UNROLL; k++)
            if (at + 32 * k < chunks) {
                vec<T> a;
                a.load(mine + (at + 32 * k) * 8);
                gate_sum += g.dot(k, a.v);
                up_sum += u.dot(k, a.v);
            }
    }
    gate_sum = warp_sum(gate_sum);
    up_sum = warp_sum(up_sum);
    if (lane > 0)
        return;
    if (bias) {
        gate_sum += to_f32(bias[row]);
        up_sum += to_f32(bias[(int64_t)E * I + row]);
    }
    const float rounded = to_f32(from_f32<T>(gate_sum)), beside = to_f32(from_f32<T>(up_sum));
    *out = from_f32<T>(glu_clamped(rounded, beside, limit, alpha));
}
