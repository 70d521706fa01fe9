// SPDX-License-Identifier: Apache-2.0
#include "decode.cuh"

constexpr int AHEAD = 4; // chunks asked for at once
static_assert(DECODE_TOP == 0 && DECODE_SUM == 1, "both in one load");

// Each thread has two neighbours of a row and adds up its chunks in their order.
template <typename T, int D>
static __device__ __forceinline__ void attn_decode_merge(T *o, const float *part,
                                                         const int32_t *slot, const int32_t *pos,
                                                         int R, int H, int C)
{
    const int i = blockIdx.x * NJ_THREADS + threadIdx.x, h = i / (D / 2), d = i % (D / 2) * 2;
    const int r = blockIdx.y;
    if (h >= H || slot[r] < 0)
        return;
    const int64_t head = (int64_t)r * H + h, chunk = (int64_t)R * H * (D + DECODE_STATS);
    const int chunks = pos[r] / DECODE_CHUNK + 1;
    const float *p = part + head * (D + DECODE_STATS);
    decode_sum all = decode_sum::none();
    for (int c = 0; c < chunks; c += AHEAD, p += AHEAD * chunk) {
        float2 stats[AHEAD], its[AHEAD];
#pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const bool there = c + i < chunks;
            const float *from = p + i * chunk;
            stats[i] =
                there ? *reinterpret_cast<const float2 *>(from + D) : make_float2(-INFINITY, 0);
            its[i] = there ? *reinterpret_cast<const float2 *>(from + d) : make_float2(0, 0);
        }
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            all.add(stats[i].x, stats[i].y, its[i]);
    }
    all.store(o + head * D + d);
}
