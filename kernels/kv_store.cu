// SPDX-License-Identifier: Apache-2.0
#include "kv_cache.cuh"

// Store 32 rows of one key head per block: a lane has a row, and a warp 16 bytes of all of them at a time. Consecutive
// rows are mostly consecutive positions, which lie side by side in the values.
template <typename T, int D>
static __device__ __forceinline__ void kv_store(T *k, T *v, const T *qkv, const int32_t *slot,
                                                const int32_t *pos, int N, int H, int K, int P,
                                                int G)
{
    constexpr int W = vec<T>::N;
    const int n = blockIdx.x * 32 + threadIdx.x % 32, kv = blockIdx.y;
    const int s = stored_slot(slot, n, N, P);
    if (s < 0)
        return;
    const int p = pos[n] % P;
    const int64_t at = ((int64_t)s * K + kv) * P * D;
    T *values = v + at + value_at<D>(p, 0);
    const T *key = qkv + ((int64_t)n * (H + 2 * K) + H + kv) * D, *value = key + K * D;
#pragma unroll
    for (int d = threadIdx.x / 32 * W; d < D; d += NJ_THREADS / 32 * W) {
        *reinterpret_cast<uint4 *>(k + at + (int64_t)p * D + d) = vec<T>::read(key + d);
        alignas(16) T x[W];
        *reinterpret_cast<uint4 *>(x) = vec<T>::read(value + d);
#pragma unroll
        for (int i = 0; i < W; i++)
            values[(d + i) * CACHE_BLOCK] = x[i];
    }
}
