// SPDX-License-Identifier: Apache-2.0
#include "decode.cuh"

template <typename T, int D>
static __device__ __forceinline__ void
attn_decode(T *o, float *part, T *k, T *v, const T *qkv, const T *bias, const float *inv_freq,
            const T *sink, const int32_t *slot, const int32_t *pos, int R, int H, int K, int P,
            int G, int C, int window, float scale, float amplitude)
{
    __shared__ decode_newest<T, D> newest;
    const int kv = blockIdx.x;
    const T *row = qkv + (int64_t)blockIdx.z * (H + 2 * K) * D;
    const decode_input<T, D> in = {row, bias, inv_freq, amplitude, (H + kv) * D, (H + K + kv) * D};
    const auto cache_of = [&](int s, int last) {
        const int64_t at = ((int64_t)s * K + kv) * P * D;
        return decode_cache<T, D>{k + at, v + at, last, window, {P, last}, in, &newest};
    };
    decode_row<decode_warp<T, D>, D>(o, part, in, sink, slot, pos, cache_of, R, H, K, C, window,
                                     scale);
}
