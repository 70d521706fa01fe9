// SPDX-License-Identifier: Apache-2.0
#include "heads.cuh"

// A block a row, a group of threads a head; all threads make every turn, since sums need whole
// warps.
template <typename T>
static __device__ __forceinline__ void
qknorm_rope_fwd(T *y, float *rstd, const T *x, const T *wq, const T *wk, const float *inv_freq,
                const int *pos, int N, int H, int K, int D, float eps)
{
    constexpr int V = vec<T>::N;
    const head_share<T> share(D);
    const int64_t n = blockIdx.x, row = n * (H + 2 * K) * D;
    rotation<V> rot;
    for (int first = 0; first < H + 2 * K; first += share.groups) {
        const int h = first + share.group;
        const bool active = share.used && h < H + 2 * K;
        const int64_t at = row + (int64_t)h * D;
        typename vec<T>::raw lo_raw = {}, hi_raw = {};
        if (active) {
            lo_raw = vec<T>::read(x + at + share.lo);
            hi_raw = vec<T>::read(x + at + share.hi);
        }
        if (first == 0) // here, so that the loads above are under way
            rot.set(pos[n], inv_freq + share.lo, 1.0f);
        vec<T> lo, hi;
        lo.set(lo_raw);
        hi.set(hi_raw);
        float sum = 0;
#pragma unroll
        for (int i = 0; i < V; i++)
            sum += lo.v[i] * lo.v[i] + hi.v[i] * hi.v[i];
        const float r = rsqrtf(share.sum(sum) / D + eps);
        if (!active)
            continue;
        if (h < H + K) {
            const T *w = h < H ? wq : wk;
            vec<T> gain_lo, gain_hi;
            gain_lo.load(w + share.lo);
            gain_hi.load(w + share.hi);
#pragma unroll
            for (int i = 0; i < V; i++) {
                lo.v[i] = lo.v[i] * r * gain_lo.v[i];
                hi.v[i] = hi.v[i] * r * gain_hi.v[i];
            }
            rot.apply(lo.v, hi.v);
            if (share.lo == 0)
                rstd[n * (H + K) + h] = r;
        }
        lo.store(y + at + share.lo);
        hi.store(y + at + share.hi);
    }
}
