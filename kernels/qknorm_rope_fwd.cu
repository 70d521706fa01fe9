// SPDX-License-Identifier: Apache-2.0
#include "heads.cuh"

// Copy a row's values, with four accesses in flight.
template <typename T>
static __device__ __forceinline__ void copy_values(T *y, const T *x, int count)
{
    constexpr int V = vec<T>::N, UNDER_WAY = 4;
#pragma unroll 1
    for (int first = threadIdx.x % 32 * V; first < count; first += UNDER_WAY * 32 * V) {
        typename vec<T>::raw raw[UNDER_WAY] = {};
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++)
            if (first + u * 32 * V < count)
                raw[u] = vec<T>::read(x + first + u * 32 * V);
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++)
            if (first + u * 32 * V < count)
                *reinterpret_cast<typename vec<T>::raw *>(y + first + u * 32 * V) = raw[u];
    }
}

// Normalize and rotate a row per warp; the gain goes before the rotation or after it. Each iteration takes HEADS heads
// per group, all queries or all keys; all threads run every iteration, since sums need whole warps. The heads of an
// iteration are read during the one before.
template <typename T>
static __device__ __forceinline__ void
qknorm_rope_fwd(T *y, float *rstd, const T *x, const T *wq, const T *wk, const float *inv_freq,
                const int *pos, int N, int H, int K, int D, float eps, float amplitude,
                float offset, int gain_last)
{
    constexpr int V = vec<T>::N, HEADS = 2;
    const head_share<T> share(D);
    const int64_t n = (int64_t)block_from_last() * share.WARPS + threadIdx.x / 32;
    if (n >= N)
        return;
    x += n * (H + 2 * K) * D;
    y += n * (H + 2 * K) * D;
    rstd += n * (H + K);
    const int half = D / 2, rotated = H + K;
    const float per_element = __fdividef(1.0f, D);
    typename vec<T>::raw raw[HEADS][2];
    const auto turn_end = [&](int first) {
        return min(first + HEADS * share.groups, first < H ? H : rotated);
    };
    const auto read = [&](int first, int end) {
#pragma unroll
        for (int u = 0; u < HEADS; u++) {
            const int h = first + u * share.groups + share.group;
            raw[u][0] = raw[u][1] = {};
            if (share.used && h < end) {
                raw[u][0] = vec<T>::read(x + h * D + share.column);
                raw[u][1] = vec<T>::read(x + h * D + share.column + half);
            }
        }
    };
    // All these loads are issued before anything waits.
    int end = turn_end(0);
    read(0, end);
    const int position = pos[n];
    head_gain<T> gain;
    gain.read(wq, share.column, half);
    if (y != x)
        copy_values(y + rotated * D, x + rotated * D, K * D);
    rotation<V> rot;
    rot.set(position, inv_freq + share.column, amplitude);
    for (int first = 0; first < rotated;) {
        if (first == H)
            gain.read(wk, share.column, half); // before the loads below, which take longer
        vec<T> lo[HEADS], hi[HEADS];
        float sum[HEADS] = {};
#pragma unroll
        for (int u = 0; u < HEADS; u++) {
            lo[u].set(raw[u][0]);
            hi[u].set(raw[u][1]);
        }
        const int next_end = turn_end(end);
        read(end, next_end);
#pragma unroll
        for (int u = 0; u < HEADS; u++)
#pragma unroll
            for (int i = 0; i < V; i++)
                sum[u] += lo[u].v[i] * lo[u].v[i] + hi[u].v[i] * hi[u].v[i];
        share.sum(sum);
#pragma unroll
        for (int u = 0; u < HEADS; u++) {
            const int h = first + u * share.groups + share.group;
            const float r = rsqrtf(sum[u] * per_element + eps);
#pragma unroll
            for (int i = 0; i < V; i++) {
                lo[u].v[i] *= r;
                hi[u].v[i] *= r;
            }
            if (!gain_last)
                gain.apply(lo[u].v, hi[u].v, offset);
            rot.apply(lo[u].v, hi[u].v);
            if (gain_last)
                gain.apply(lo[u].v, hi[u].v, offset);
            if (!share.used || h >= end)
                continue;
            if (share.column == 0)
                rstd[h] = r;
            lo[u].store(y + h * D + share.column);
            hi[u].store(y + h * D + share.column + half);
        }
        first = end;
        end = next_end;
    }
}
