// SPDX-License-Identifier: Apache-2.0
#include "decode.cuh"

// One block takes one chunk of keys of one row and all query heads of one key head, ROWS at a time
// (more read the keys again); its warps take KEYS keys in turn and are added up in their order. The
// block whose chunk has the newest position stores it when nobody reads the cache any more.
template <typename T, int D>
static __device__ __forceinline__ void attn_decode(T *o, float *part, T *k, T *v, const T *qkv,
                                                   const int32_t *slot, const int32_t *pos, int R,
                                                   int H, int K, int P, int G, int C, float scale)
{
    typedef decode_warp<T, D> warp_of;
    constexpr int ROWS = warp_of::ROWS, KEYS = warp_of::KEYS, WARPS = NJ_THREADS / 32;
    __shared__ decode_shared<ROWS, D> shared;
    const int kv = blockIdx.x, chunk = blockIdx.y, r = blockIdx.z, group = H / K;
    const int s = slot[r], last = pos[r], first = chunk * DECODE_CHUNK;
    if (s < 0 || first > last)
        return;
    const int64_t at = ((int64_t)s * K + kv) * P * D;
    const T *row = qkv + (int64_t)r * (H + 2 * K) * D;
    const T *new_k = row + (H + kv) * D, *new_v = new_k + K * D;
    const decode_cache<T> cache = {k + at, v + at, new_k, new_v, last, P};
    const float scale_log2 = scale * LOG2_E;
    const int end = min(first + DECODE_CHUNK, last + 1);
    for (int head = kv * group; head < (kv + 1) * group; head += ROWS) {
        const int heads = min(ROWS, (kv + 1) * group - head);
        warp_of mine(row + head * D, heads);
        for (int j = first + threadIdx.x / 32 * KEYS; j < end; j += WARPS * KEYS)
            mine.step(cache, j, scale_log2);
        __syncthreads(); // nobody reads what the heads before these have left
        mine.put(shared);
        __syncthreads();
        for (int i = threadIdx.x; i < heads * (D / 2); i += NJ_THREADS) {
            const int h = i / (D / 2), d = i % (D / 2) * 2;
            const decode_sum all(
                WARPS, [&](int w) { return shared.top[w][h]; },
                [&](int w) { return shared.sum[w][h]; },
                [&](int w) { return *reinterpret_cast<float2 *>(&shared.acc[w][h][d]); });
            const int64_t to = (int64_t)r * H + head + h;
            if (C == 1) {
                all.store(o + to * D + d);
                continue;
            }
            float *p = part + ((int64_t)chunk * R * H + to) * (D + DECODE_STATS);
            store2(p + d, all.x, all.y);
            if (d == 0)
                store2(p + D, all.top, all.sum);
        }
    }
    if (last < first + DECODE_CHUNK) {
        for (int d = threadIdx.x; d < D; d += NJ_THREADS) {
            k[at + (int64_t)last * D + d] = new_k[d];
            v[at + (int64_t)d * P + last] = new_v[d];
        }
    }
}
