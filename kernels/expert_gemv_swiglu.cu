// SPDX-License-Identifier: Apache-2.0
#include "gemv.cuh"
#include "glu_clamped.cuh"

// A warp takes a row of an expert's gate and the same row of its up. Which expert it is, the kernel ahead decides, so
// nothing can be loaded before that has ended.
template <typename T>
static __device__ __forceinline__ void
expert_gemv_swiglu(T *act, const T *x, const T *w, const T *bias, const int *chosen, int N, int J,
                   int E, int I, int C, float limit, float alpha)
{
    constexpr int V = vec<T>::N, UNROLL = 4;
    nj_kernel_begin();
    const int i = blockIdx.x * (NJ_THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int pair = blockIdx.y, e = chosen[pair], chunks = C / V;
    if (i >= I)
        return;
    T *const out = act + (int64_t)pair * I + i;
    if (e < 0) {
        if (lane == 0)
            *out = from_f32<T>(0);
        return;
    }
    const auto row_of = [&](int r) { return ((int64_t)r * E + e) * I + i; };
    const auto weights = [&](int r) { return w + row_of(r) * C; };
    const T *const mine = x + pair / J * (int64_t)C;
    const auto rows_of_x = [&](int, int c) { return vec<T>::read(mine + (int64_t)c * V); };
    gemv_sums<T, 1, 2, UNROLL> sums;
    sums.clear();
    for (int at = 0; at < chunks; at += UNROLL * 32) {
        sums.fetch(weights, at + lane, chunks);
        sums.add(rows_of_x, at + lane, chunks);
    }
    float sum = sums.finish(); // lane 0: gate, lane 1: up
    if (bias && lane < 2)
        sum += to_f32(bias[row_of(lane)]);
    const float gate = to_f32(from_f32<T>(sum)); // rounded as if it were stored
    const float up = __shfl_xor_sync(0xffffffffu, gate, 1);
    if (lane == 0)
        *out = from_f32<T>(glu_clamped(gate, up, limit, alpha));
}
