// SPDX-License-Identifier: Apache-2.0
#include "gemv.cuh"

#include "base/route.h"

// A warp takes a channel of y. Its lanes go through the chunks of all experts' rows as if they were one row, so that
// loads of several experts are in flight together.
template <typename T>
static __device__ __forceinline__ void
expert_gemv_down(T *y, const T *act, const T *w, const T *bias, const int *chosen,
                 const float *weight, int N, int J, int E, int I, int C)
{
    constexpr int V = vec<T>::N, UNROLL = 8;
    __shared__ int its[NJ_CHOSEN_MAX];
    __shared__ float part[NJ_CHOSEN_MAX];
    nj_kernel_begin();
    const int c = blockIdx.x * (NJ_THREADS / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    const int n = blockIdx.y, chunks = I / V, all = J * chunks;
    if (threadIdx.x < J) {
        its[threadIdx.x] = chosen[n * J + threadIdx.x];
        part[threadIdx.x] = its[threadIdx.x] < 0 ? 0 : weight[n * J + threadIdx.x];
    }
    __syncthreads();
    if (c >= C)
        return;
    const auto row_of = [&](int j) { return (int64_t)max(its[j], 0) * C + c; };
    const T *const mine = act + (int64_t)n * J * I;
    float sum = bias && lane < J ? part[lane] * to_f32(bias[row_of(lane)]) : 0;
    for (int at = lane; at < all; at += UNROLL * 32) {
        uint4 tile[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int q = min(at + 32 * u, all - 1), j = q / chunks;
            tile[u] = load_once(w + row_of(j) * I + (q - j * chunks) * V,
                                at + 32 * u < all && its[j] >= 0);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const int q = min(at + 32 * u, all - 1); // beyond the last chunk the weights are 0
            const vec<T> a = vec<T>::of(vec<T>::read(mine + (int64_t)q * V)),
                         b = vec<T>::of(tile[u]);
            float one = a.v[0] * b.v[0];
#pragma unroll
            for (int i = 1; i < V; i++)
                one += a.v[i] * b.v[i];
            sum += part[q / chunks] * one;
        }
    }
    sum = warp_sum(sum);
    T *const to = y + (int64_t)n * C + c;
    if (lane == 0)
        *to = from_f32<T>(to_f32(*to) + sum);
}
