// SPDX-License-Identifier: Apache-2.0
#include "gated_norm.cuh"

template <typename T, int D>
static __device__ __forceinline__ void gated_norm_fwd(T *y, const T *o, const T *z, const T *w,
                                                      int N, int H, int ld, float eps)
{
    typedef head_group<T, D> group;
    const int heads = N * H, head = block_from_last() * group::GROUPS + group::number();
    const int i = min(head, heads - 1); // a group without a head stores nothing
    const int64_t at = (int64_t)i * D + group::column();
    vec<T> x, gate, gain;
    x.load(o + at);
    gate.load(z + (int64_t)(i / H) * ld + i % H * D + group::column());
    gain.load(w + group::column());
    const float r = group::root(x, eps);
#pragma unroll
    for (int k = 0; k < group::V; k++)
        x.v[k] *= r * gain.v[k] * gate.v[k] * sigmoid(gate.v[k]);
    if (head < heads)
        x.store(y + at);
}
