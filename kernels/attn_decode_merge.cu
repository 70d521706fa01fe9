// SPDX-License-Identifier: Apache-2.0
#include "decode.cuh"

// Add up the chunks of a row in their order; each thread has two adjacent elements.
template <typename T, int D>
static __device__ __forceinline__ void attn_decode_merge(T *o, const float *part, const T *sink,
                                                         const int32_t *slot, const int32_t *pos,
                                                         int R, int H, int C, int window)
{
    const int i = blockIdx.x * NJ_THREADS + threadIdx.x, h = i / (D / 2), d = i % (D / 2) * 2;
    const int r = blockIdx.y;
    if (h >= H || slot[r] < 0)
        return;
    const int64_t head = (int64_t)r * H + h, chunk = (int64_t)R * H * (D + DECODE_STATS);
    const int last = pos[r], first = first_seen(0, last, window) / DECODE_CHUNK;
    const float *p = part + first * chunk + head * (D + DECODE_STATS);
    decode_sum all = decode_sum::none();
    for (int c = first; c <= last / DECODE_CHUNK; c++, p += chunk)
        all.add(p[D + DECODE_TOP], p[D + DECODE_SUM], *reinterpret_cast<const float2 *>(p + d));
    if (sink)
        all.add_sink(to_f32(sink[h]));
    all.store(o + head * D + d);
}
