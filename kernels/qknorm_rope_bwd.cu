// SPDX-License-Identifier: Apache-2.0
#include "heads.cuh"

// What a thread reads of a head: V elements of either half.
template <typename T> struct head_inputs {
    typename vec<T>::raw g_lo, g_hi, x_lo, x_hi;
    float r;
    int pos;
};

// Adds up the block's sums: groups of a warp by shuffles, then the warps in order.
template <typename T>
static __device__ __forceinline__ void reduce_gain(float *dw, float (&lo)[vec<T>::N],
                                                   float (&hi)[vec<T>::N],
                                                   const head_share<T> &share, int D)
{
    constexpr int V = vec<T>::N;
    extern __shared__ float part[]; // [warp][D]
    float *mine = part + threadIdx.x / 32 * D + share.column;
    __syncthreads(); // part may still be read from an earlier call
#pragma unroll
    for (int i = 0; i < V; i++) {
        for (int d = share.width; d < 32; d *= 2) {
            lo[i] += __shfl_xor_sync(0xffffffffu, lo[i], d);
            hi[i] += __shfl_xor_sync(0xffffffffu, hi[i], d);
        }
        if (share.used && share.group == 0) {
            mine[i] = lo[i];
            mine[i + D / 2] = hi[i];
        }
    }
    __syncthreads();
    for (int c = threadIdx.x; c < D; c += NJ_THREADS) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < share.WARPS; k++)
            sum += part[k * D + c];
        dw[c] = sum;
    }
}

// Heads first to end of the block's rows, a warp a row, a group of threads a head; all threads make
// every turn, since sums need whole warps. The inputs of a turn are read during the one before.
template <typename T>
static __device__ __forceinline__ void
back_heads(T *dqkv, float *dw, const T *x, const float *rstd, const T *w, const float *inv_freq,
           const int *pos, int N, int H, int K, int D, int P, int first, int end)
{
    constexpr int V = vec<T>::N;
    const head_share<T> share(D);
    const int half = D / 2;
    vec<T> w_lo, w_hi;
    w_lo.load(w + share.column);
    w_hi.load(w + share.column + half);
    float dw_lo[V] = {}, dw_hi[V] = {};
    rotation<V> back;

    uint32_t n = blockIdx.x + threadIdx.x / 32 * P;
    int h = first + share.group;
    const auto active = [&] { return share.used && h < end; };
    const auto offset = [&](int head) {
        return (int64_t)n * ((H + 2 * K) * D) + head * D + share.column;
    };
    head_inputs<T> in;
    const auto read = [&] { // a thread without elements reads some of others and counts them as 0
        if (n >= N)
            return;
        const int64_t at = offset(min(h, end - 1));
        in.g_lo = vec<T>::read(dqkv + at);
        in.g_hi = vec<T>::read(dqkv + at + half);
        in.x_lo = vec<T>::read(x + at);
        in.x_hi = vec<T>::read(x + at + half);
        in.r = active() ? rstd[(int64_t)n * (H + K) + h] : 0.0f;
        in.pos = pos[n];
    };
    read();
    while (n < N) {
        vec<T> g_lo, g_hi, x_lo, x_hi;
        g_lo.set(in.g_lo);
        g_hi.set(in.g_hi);
        x_lo.set(in.x_lo);
        x_hi.set(in.x_hi);
        const float r = in.r;
        const int position = in.pos;
        const bool store = active(), fresh = h == first + share.group;
        T *out = dqkv + offset(h);
        h += share.groups;
        if (h - share.group >= end) {
            h = first + share.group;
            n += P * share.WARPS;
        }
        if (fresh) // before the loads below, which take longer
            back.set(position, inv_freq + share.column, -1.0f);
        read();
        back.apply(g_lo.v, g_hi.v);
        float dot[1] = {};
#pragma unroll
        for (int i = 0; i < V; i++) {
            g_lo.v[i] *= r;
            g_hi.v[i] *= r;
            dw_lo[i] += g_lo.v[i] * x_lo.v[i];
            dw_hi[i] += g_hi.v[i] * x_hi.v[i];
            g_lo.v[i] *= w_lo.v[i];
            g_hi.v[i] *= w_hi.v[i];
            dot[0] += g_lo.v[i] * x_lo.v[i] + g_hi.v[i] * x_hi.v[i];
        }
        share.sum(dot);
        const float along = r * r * __fdividef(dot[0], D);
#pragma unroll
        for (int i = 0; i < V; i++) {
            g_lo.v[i] -= x_lo.v[i] * along;
            g_hi.v[i] -= x_hi.v[i] * along;
        }
        if (store) {
            g_lo.store(out);
            g_hi.store(out + half);
        }
    }
    reduce_gain<T>(dw + (int64_t)blockIdx.x * D, dw_lo, dw_hi, share, D);
}

// Block p takes rows p, p + P, ...: first the queries of all of them, then the keys, so that a
// thread holds one gain and one sum at a time.
template <typename T>
static __device__ __forceinline__ void
qknorm_rope_bwd(T *dqkv, float *dwq_part, float *dwk_part, const T *x, const float *rstd,
                const T *wq, const T *wk, const float *inv_freq, const int *pos, int N, int H,
                int K, int D, int P)
{
    back_heads<T>(dqkv, dwq_part, x, rstd, wq, inv_freq, pos, N, H, K, D, P, 0, H);
    back_heads<T>(dqkv, dwk_part, x, rstd, wk, inv_freq, pos, N, H, K, D, P, H, H + K);
}
