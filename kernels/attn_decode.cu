// SPDX-License-Identifier: Apache-2.0
#include "decode.cuh"

template <typename T, int D>
static __device__ __forceinline__ void attn_decode(T *o, float *part, T *k, T *v, const T *qkv,
                                                   const int32_t *slot, const int32_t *pos, int R,
                                                   int H, int K, int P, int G, int C, float scale)
{
    const int kv = blockIdx.x, chunk = blockIdx.y, r = blockIdx.z;
    const int s = slot[r], last = pos[r];
    if (s < 0 || chunk * DECODE_CHUNK > last)
        return;
    const int64_t at = ((int64_t)s * K + kv) * P * D;
    const T *row = qkv + (int64_t)r * (H + 2 * K) * D;
    const decode_cache<T, D> cache = {k + at, v + at, row + (H + kv) * D, row + (H + K + kv) * D,
                                      last,   P};
    decode_row<decode_warp<T, D>, D>(o, part, row, cache, R, H, K, C, scale);
}
