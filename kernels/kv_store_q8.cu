// SPDX-License-Identifier: Apache-2.0
#include "kv_cache.cuh"
#include "kv_levels.cuh"

// Store 32 rows of one key head per block, a lane per row, like kv_store. Each warp has some of their dims; together
// they find the largest magnitude.
template <typename T, int D>
static __device__ __forceinline__ void
kv_store_q8(int32_t *k, int32_t *v, float *kv_scale, const T *qkv, const int32_t *slot,
            const int32_t *pos, int N, int H, int K, int P, int G)
{
    constexpr int W = vec<T>::N, WARPS = NJ_THREADS / 32, PARTS = D / (W * WARPS);
    __shared__ float most[2][WARPS][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, n = blockIdx.x * 32 + lane;
    const int kv = blockIdx.y, s = stored_slot(slot, n, N, P);
    vec<T> x[2][PARTS]; // keys, values
    if (s >= 0) {
        const T *row = qkv + ((int64_t)n * (H + 2 * K) + H + kv) * D + warp * W;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float part = 0;
#pragma unroll
            for (int j = 0; j < PARTS; j++) {
                x[i][j].load(row + i * K * D + j * WARPS * W);
                part = fmaxf(part, most_of(x[i][j].v));
            }
            most[i][warp][lane] = part;
        }
    }
    __syncthreads();
    if (s < 0)
        return;
    float all[2] = {};
#pragma unroll
    for (int i = 0; i < 2; i++) {
#pragma unroll
        for (int w = 0; w < WARPS; w++)
            all[i] = fmaxf(all[i], most[i][w][lane]);
    }
    const kv_levels key(all[0]), value(all[1]);
    const int64_t head = ((int64_t)s * K + kv) * P;
    const int p = pos[n] % P;
    if (warp == 0)
        reinterpret_cast<float2 *>(kv_scale)[head + p] = make_float2(key.scale, value.scale);
#pragma unroll
    for (int j = 0; j < PARTS; j++) {
        const int d = (j * WARPS + warp) * W;
        int32_t *keys = k + ((head + p) * D + d) / 4;
        int8_t *values = reinterpret_cast<int8_t *>(v) + head * D + value_at<D>(p, d);
#pragma unroll
        for (int i = 0; i < W; i += 4)
            keys[i / 4] = key.word(x[0][j].v + i);
#pragma unroll
        for (int i = 0; i < W; i++)
            values[i * CACHE_BLOCK] = value.level(x[1][j].v[i]);
    }
}
