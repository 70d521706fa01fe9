// SPDX-License-Identifier: Apache-2.0
#include "decode_q8.cuh"

template <typename T, int D>
static __device__ __forceinline__ void
attn_decode_q8(T *o, float *part, int32_t *k, int32_t *v, float *kv_scale, const T *qkv,
               const int32_t *slot, const int32_t *pos, int R, int H, int K, int P, int G, int C,
               float scale)
{
    __shared__ decode_newest<D> newest;
    const int kv = blockIdx.x, chunk = blockIdx.y, r = blockIdx.z;
    const int s = slot[r], last = pos[r];
    if (s < 0 || chunk * DECODE_CHUNK > last)
        return;
    const int64_t head = ((int64_t)s * K + kv) * P;
    const T *row = qkv + (int64_t)r * (H + 2 * K) * D;
    const decode_cache_q8<T, D> cache = {reinterpret_cast<int8_t *>(k) + head * D,
                                         reinterpret_cast<int8_t *>(v) + head * D,
                                         reinterpret_cast<float2 *>(kv_scale) + head,
                                         row + (H + kv) * D,
                                         row + (H + K + kv) * D,
                                         last,
                                         P,
                                         &newest};
    decode_row<decode_warp_q8<T, D>, D>(o, part, row, cache, R, H, K, C, scale);
}
