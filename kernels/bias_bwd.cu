// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Block p has the rows p, p + P, ... of the columns that a warp covers. Its warps take the rows in turn, several in
// flight; at the end their sums are added in order.
template <typename T>
static __device__ __forceinline__ void bias_bwd(float *part, const T *dy, int N, int C, int P)
{
    constexpr int V = vec<T>::N, WARPS = NJ_THREADS / 32, COLUMNS = 32 * V, BATCH = 4;
    __shared__ __align__(16) float sums[WARPS][COLUMNS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int begin = blockIdx.y * COLUMNS, c = begin + lane * V;
    const int64_t apart = (int64_t)WARPS * P; // rows between two of a warp
    float sum[V] = {};
    for (int64_t n = blockIdx.x + (int64_t)warp * P; n < N && c < C; n += BATCH * apart) {
        typename vec<T>::raw raw[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            raw[k] = {};
            if (n + k * apart < N)
                raw[k] = vec<T>::read(dy + (n + k * apart) * C + c);
        }
#pragma unroll
        for (int k = 0; k < BATCH; k++) {
            const vec<T> g = vec<T>::of(raw[k]);
#pragma unroll
            for (int i = 0; i < V; i++)
                sum[i] += g.v[i];
        }
    }
#pragma unroll
    for (int i = 0; i < V; i += 4)
        *reinterpret_cast<float4 *>(&sums[warp][lane * V + i]) =
            make_float4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]);
    __syncthreads();
    for (int i = threadIdx.x; i < COLUMNS && begin + i < C; i += NJ_THREADS) {
        float total = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            total += sums[w][i];
        part[(int64_t)blockIdx.x * C + begin + i] = total;
    }
}
