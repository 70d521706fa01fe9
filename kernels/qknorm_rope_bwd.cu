// SPDX-License-Identifier: Apache-2.0
#include "heads.cuh"

// A thread's inputs of a head: V elements of each half.
template <typename T> struct head_inputs {
    typename vec<T>::raw g_lo, g_hi, x_lo, x_hi;
    float r;
    int pos;
};

// Add the sums that the groups of a warp have of the gradient of a norm's weights.
template <typename T>
static __device__ __forceinline__ void sum_groups(int key, float (&lo)[vec<T>::N],
                                                  float (&hi)[vec<T>::N],
                                                  const head_share<T> &share, int D)
{
    extern __shared__ float part[]; // [warp][query or key][D]
    float *sums = part + (threadIdx.x / 32 * 2 + key) * D;
#pragma unroll
    for (int i = 0; i < vec<T>::N; i++) {
        for (int d = share.width; d < 32; d *= 2) {
            lo[i] += __shfl_xor_sync(0xffffffffu, lo[i], d);
            hi[i] += __shfl_xor_sync(0xffffffffu, hi[i], d);
        }
        if (share.used && share.group == 0) {
            sums[share.column + i] = lo[i];
            sums[share.column + D / 2 + i] = hi[i];
        }
    }
}

// Compute the gradient of the queries or keys of the block's rows: a warp per row, a group of threads per head. All
// threads run every iteration, since sums need whole warps. The inputs of an iteration are read during the one before.
// If the gain is last, the gradient meets the rotated elements, and is rotated back at the end: its product with
// rotated elements is that of the gradient, rotated back, with the elements. For want of registers, inputs are read
// later then.
template <typename T, bool LAST>
static __device__ __forceinline__ void
back_heads(int key, T *dqkv, const T *x, const float *rstd, const T *w, const float *inv_freq,
           const int *pos, int N, int H, int K, int D, int P, float amplitude, float offset)
{
    constexpr int V = vec<T>::N;
    const head_share<T> share(D);
    const int half = D / 2, first = key * H, end = H + key * K;
    float dw_lo[V] = {}, dw_hi[V] = {};
    rotation<V> rot;

    uint32_t n = blockIdx.x + threadIdx.x / 32 * P;
    int h = first + share.group;
    const auto active = [&] { return share.used && n < N && h < end; };
    const auto place = [&] { return (int64_t)n * ((H + 2 * K) * D) + h * D + share.column; };
    const auto read = [&] {
        head_inputs<T> in = {};
        if (active()) {
            const int64_t at = place();
            in.g_lo = vec<T>::read(dqkv + at);
            in.g_hi = vec<T>::read(dqkv + at + half);
            in.x_lo = vec<T>::read(x + at);
            in.x_hi = vec<T>::read(x + at + half);
            in.r = rstd[(int64_t)n * (H + K) + h];
            in.pos = pos[n];
        }
        return in;
    };
    head_inputs<T> in = read(); // before anything waits
    head_gain<T> gain;
    gain.read(w, share.column, half);
    while (n < N) {
        if (h == first + share.group) // before the loads below, which take longer
            rot.set(in.pos, inv_freq + share.column, amplitude);
        vec<T> g_lo, g_hi, x_lo, x_hi;
        g_lo.set(in.g_lo);
        g_hi.set(in.g_hi);
        x_lo.set(in.x_lo);
        x_hi.set(in.x_hi);
        const float r = in.r;
        const bool store = active();
        T *out = dqkv + place();
        h += share.groups;
        if (h - share.group >= end) {
            h = first + share.group;
            n += P * share.WARPS;
        }
        if (LAST) {
            rot.apply(x_lo.v, x_hi.v);
        } else {
            in = read();
            rot.apply_back(g_lo.v, g_hi.v);
        }
        float dot[1] = {};
#pragma unroll
        for (int i = 0; i < V; i++) {
            g_lo.v[i] *= r;
            g_hi.v[i] *= r;
            dw_lo[i] += g_lo.v[i] * x_lo.v[i];
            dw_hi[i] += g_hi.v[i] * x_hi.v[i];
        }
        gain.apply(g_lo.v, g_hi.v, offset);
#pragma unroll
        for (int i = 0; i < V; i++)
            dot[0] += g_lo.v[i] * x_lo.v[i] + g_hi.v[i] * x_hi.v[i];
        if (LAST) {
            rot.apply_back(g_lo.v, g_hi.v);
            x_lo.set(in.x_lo);
            x_hi.set(in.x_hi);
            in = read();
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
    sum_groups<T>(key, dw_lo, dw_hi, share, D);
}

// Take rows p, p + P, ... in block p: first the queries of all rows, then the keys, so that a thread holds one weight
// and one sum at a time.
template <typename T>
static __device__ __forceinline__ void
qknorm_rope_bwd(T *dqkv, float *dwq_part, float *dwk_part, const T *x, const float *rstd,
                const T *wq, const T *wk, const float *inv_freq, const int *pos, int N, int H,
                int K, int D, int P, float amplitude, float offset, int gain_last)
{
    extern __shared__ float part[]; // [warp][query or key][D]
#pragma unroll 1
    for (int key = 0; key < 2; key++) {
        const T *w = key ? wk : wq;
        if (gain_last)
            back_heads<T, true>(key, dqkv, x, rstd, w, inv_freq, pos, N, H, K, D, P, amplitude,
                                offset);
        else
            back_heads<T, false>(key, dqkv, x, rstd, w, inv_freq, pos, N, H, K, D, P, amplitude,
                                 offset);
    }
    __syncthreads();
    const int64_t at = (int64_t)blockIdx.x * D;
    for (int c = threadIdx.x; c < 2 * D; c += NJ_THREADS) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < NJ_THREADS / 32; k++)
            sum += part[k * 2 * D + c];
        float *dw = c < D ? dwq_part : dwk_part;
        if (dw)
            dw[at + c % D] = sum;
    }
}
