// SPDX-License-Identifier: Apache-2.0
#include "delta.cuh"

// Elements of a head that a lane has, widened.
template <typename T, int V>
static __device__ __forceinline__ void load_share(float (&x)[V], const T *head)
{
#pragma unroll
    for (int i = 0; i < V; i++)
        x[i] = to_f32(head[lane_id() * V + i]);
}

template <int V>
static __device__ __forceinline__ float dot(const float (&x)[V], const float (&y)[V])
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < V; i++)
        sum = fmaf(x[i], y[i], sum);
    return sum;
}

// Block (h, y, r) has 32 columns of values of a head, a warp eight: their parts of the state are read once, all in
// flight together, and written once.
template <typename T, int D>
static __device__ __forceinline__ void delta_step(T *o, float *state, const T *qkv, const T *b,
                                                  const T *a, const T *a_log, const T *dt_bias,
                                                  const int32_t *slot, const int32_t *pos, int R,
                                                  int H, int K, int ld, int G)
{
    constexpr int V = D / 32, COLUMNS = 8;
    const int h = blockIdx.x, r = blockIdx.z;
    const int column = blockIdx.y * 32 + threadIdx.x / 32 * COLUMNS;
    if (slot[r] < 0)
        return;
    const delta_heads<D> heads(H, K, h);
    const T *row = qkv + (int64_t)r * heads.row;
    float *from = state + (((int64_t)slot[r] * H + h) * D + column) * D + lane_id() * V;
    vec<float, V> s[COLUMNS];
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        s[i] = {};
        if (pos[r] > 0)
            s[i].load(from + i * D);
    }
    float q[V], k[V];
    load_share(q, row + heads.q);
    load_share(k, row + heads.k);
    const int64_t at = (int64_t)r * ld + h;
    const float step = to_f32(a[at]) + to_f32(dt_bias[h]);
    const float keep = exp_fast(-exp_fast(to_f32(a_log[h])) * softplus(step));
    const float beta = sigmoid(to_f32(b[at]));
    const float of_k = rsqrtf(warp_sum(dot(k, k)) + DELTA_EPS);
    const float of_q = rsqrtf((warp_sum(dot(q, q)) + DELTA_EPS) * D);
    const float score = warp_sum(dot(q, k)) * of_q * of_k;
    float mine = 0; // the output of column lane
#pragma unroll
    for (int i = 0; i < COLUMNS; i++) {
        const float seen = keep * of_k * warp_sum(dot(s[i].v, k));
        const float read = keep * of_q * warp_sum(dot(s[i].v, q));
        const float update = beta * (to_f32(row[heads.v + column + i]) - seen);
#pragma unroll
        for (int d = 0; d < V; d++)
            s[i].v[d] = fmaf(update * of_k, k[d], keep * s[i].v[d]);
        s[i].store(from + i * D);
        mine = lane_id() == i ? fmaf(update, score, read) : mine;
    }
    if (lane_id() < COLUMNS)
        o[((int64_t)r * H + h) * D + column + lane_id()] = from_f32<T>(mine);
}
