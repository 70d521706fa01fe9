// SPDX-License-Identifier: Apache-2.0
#include "heads.cuh"

// Gradients of the gain that a thread has gathered: [0] for queries, [1] for keys.
template <int V> struct gain_sums {
    float lo[2][V], hi[2][V];
};

// Adds up the block's sums: groups of a warp by shuffles, then the warps in order.
template <typename T>
static __device__ __forceinline__ void
reduce_gains(float *dwq, float *dwk, gain_sums<vec<T>::N> &dw, const head_share<T> &share, int D)
{
    constexpr int V = vec<T>::N, WARPS = NJ_THREADS / 32;
    extern __shared__ float part[]; // [warp][query or key][D]
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int key = 0; key < 2; key++)
#pragma unroll
        for (int i = 0; i < V; i++) {
            for (int d = share.width; d < 32; d *= 2) {
                dw.lo[key][i] += __shfl_xor_sync(0xffffffffu, dw.lo[key][i], d);
                dw.hi[key][i] += __shfl_xor_sync(0xffffffffu, dw.hi[key][i], d);
            }
            if (share.used && threadIdx.x % 32 < share.width) {
                part[(warp * 2 + key) * D + share.lo + i] = dw.lo[key][i];
                part[(warp * 2 + key) * D + share.hi + i] = dw.hi[key][i];
            }
        }
    __syncthreads();
    for (int c = threadIdx.x; c < 2 * D; c += NJ_THREADS) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < WARPS; k++)
            sum += part[k * 2 * D + c];
        *(c < D ? dwq + c : dwk + c - D) = sum;
    }
}

// Block p takes rows p, p + P, ...; a group of threads a head; all threads make every turn.
template <typename T>
static __device__ __forceinline__ void
qknorm_rope_bwd(T *dqkv, float *dwq_part, float *dwk_part, const T *x, const float *rstd,
                const T *wq, const T *wk, const float *inv_freq, const int *pos, int N, int H,
                int K, int D, int P)
{
    constexpr int V = vec<T>::N;
    const head_share<T> share(D);
    gain_sums<V> dw = {};
    for (int64_t n = blockIdx.x; n < N; n += P) {
        rotation<V> back;
        for (int first = 0; first < H + K; first += share.groups) {
            const int h = first + share.group;
            const bool active = share.used && h < H + K;
            const int64_t at = (n * (H + 2 * K) + h) * D;
            typename vec<T>::raw raw[4] = {};
            float r = 0;
            if (active) {
                raw[0] = vec<T>::read(dqkv + at + share.lo);
                raw[1] = vec<T>::read(dqkv + at + share.hi);
                raw[2] = vec<T>::read(x + at + share.lo);
                raw[3] = vec<T>::read(x + at + share.hi);
                r = rstd[n * (H + K) + h];
            }
            if (first == 0) // here, so that the loads above are under way
                back.set(pos[n], inv_freq + share.lo, -1.0f);
            vec<T> g_lo, g_hi, h_lo, h_hi, w_lo, w_hi;
            g_lo.set(raw[0]);
            g_hi.set(raw[1]);
            h_lo.set(raw[2]);
            h_hi.set(raw[3]);
            const int key = h >= H;
            w_lo.load((key ? wk : wq) + share.lo);
            w_hi.load((key ? wk : wq) + share.hi);
            back.apply(g_lo.v, g_hi.v);
            float dot = 0;
#pragma unroll
            for (int i = 0; i < V; i++) {
                h_lo.v[i] *= r;
                h_hi.v[i] *= r;
                const float lo = g_lo.v[i] * h_lo.v[i], hi = g_hi.v[i] * h_hi.v[i];
                dw.lo[0][i] += key ? 0.0f : lo;
                dw.hi[0][i] += key ? 0.0f : hi;
                dw.lo[1][i] += key ? lo : 0.0f;
                dw.hi[1][i] += key ? hi : 0.0f;
                dot += lo * w_lo.v[i] + hi * w_hi.v[i];
            }
            const float mean = share.sum(dot) / D;
            if (!active)
                continue;
#pragma unroll
            for (int i = 0; i < V; i++) {
                g_lo.v[i] = r * (g_lo.v[i] * w_lo.v[i] - h_lo.v[i] * mean);
                g_hi.v[i] = r * (g_hi.v[i] * w_hi.v[i] - h_hi.v[i] * mean);
            }
            g_lo.store(dqkv + at + share.lo);
            g_hi.store(dqkv + at + share.hi);
        }
    }
    reduce_gains<T>(dwq_part + (int64_t)blockIdx.x * D, dwk_part + (int64_t)blockIdx.x * D, dw,
                    share, D);
}
