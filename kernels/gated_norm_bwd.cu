// SPDX-License-Identifier: Apache-2.0
#include "gated_norm.cuh"

// Block p has consecutive heads, which its groups take in turn. A thread sums the gradient of the gain for its columns;
// at the end the groups' sums are added in order.
template <typename T, int D>
static __device__ __forceinline__ void
gated_norm_bwd(T *dout, T *dz, float *dw_part, T *y, const T *dy, const T *o, const T *z,
               const T *w, int N, int H, int ld, int P, float eps)
{
    typedef head_group<T, D> group;
    constexpr int V = group::V, GROUPS = group::GROUPS;
    __shared__ float sums[GROUPS][D];
    const int heads = N * H, each = (heads + P - 1) / P;
    const int first = blockIdx.x * each, end = min(first + each, heads);
    const int c = group::column();
    vec<T> gain;
    gain.load(w + c);
    float dw[V] = {};
    for (int from = first; from < end; from += GROUPS) {
        const int head = from + group::number(), i = min(head, end - 1);
        const bool live = head < end;
        const int64_t at = (int64_t)i * D + c, gates = (int64_t)(i / H) * ld + i % H * D + c;
        vec<T> x, gate, g, dgate;
        x.load(o + at);
        gate.load(z + gates);
        g.load(dy + at);
        const float r = group::root(x, eps);
        float mean = 0;
#pragma unroll
        for (int k = 0; k < V; k++)
            mean += g.v[k] * gain.v[k] * gate.v[k] * sigmoid(gate.v[k]) * x.v[k];
        mean = group::sum(mean) * r * (1.0f / D);
        if (!live)
            continue;
#pragma unroll
        for (int k = 0; k < V; k++) {
            const float share = sigmoid(gate.v[k]), t = gate.v[k] * share, normed = x.v[k] * r;
            dgate.v[k] = g.v[k] * normed * gain.v[k] * share * fmaf(gate.v[k], 1 - share, 1.0f);
            dw[k] = fmaf(g.v[k] * normed, t, dw[k]);
            g.v[k] = r * (g.v[k] * gain.v[k] * t - normed * mean);
            x.v[k] = normed * gain.v[k] * t;
        }
        g.store(dout + at);
        dgate.store(dz + gates);
        if (y)
            x.store(y + at);
    }
#pragma unroll
    for (int k = 0; k < V; k++)
        sums[group::number()][c + k] = dw[k];
    __syncthreads();
    for (int d = threadIdx.x; d < D; d += NJ_THREADS) {
        float sum = 0;
        for (int g = 0; g < GROUPS; g++)
            sum += sums[g][d];
        dw_part[(int64_t)blockIdx.x * D + d] = sum;
    }
}
