// SPDX-License-Identifier: Apache-2.0
#include "decode_q8.cuh"

template <typename T, int D>
static __device__ __forceinline__ void
attn_decode_q8(T *o, float *part, int32_t *k, int32_t *v, float *kv_scale, const T *qkv,
               const T *bias, const float *inv_freq, const T *sink, const int32_t *slot,
               const int32_t *pos, int R, int H, int K, int P, int G, int C, int window,
               float scale, float amplitude)
{
    __shared__ decode_newest_q8<T, D> newest;
    const int kv = blockIdx.x;
    const T *row = qkv + (int64_t)blockIdx.z * (H + 2 * K) * D;
    const decode_input<T, D> in = {row, bias, inv_freq, amplitude, (H + kv) * D, (H + K + kv) * D};
    const auto cache_of = [&](int s, int last) {
        const int64_t head = ((int64_t)s * K + kv) * P;
        int8_t *keys = reinterpret_cast<int8_t *>(k) + head * D;
        int8_t *values = reinterpret_cast<int8_t *>(v) + head * D;
        float2 *scales = reinterpret_cast<float2 *>(kv_scale) + head;
        return decode_cache_q8<T, D>{keys, values, scales, last, window, {P, last}, in, &newest};
    };
    decode_row<decode_warp_q8<T, D>, D>(o, part, in, sink, slot, pos, cache_of, R, H, K, C, window,
                                        scale);
}
