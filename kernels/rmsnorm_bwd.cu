// SPDX-License-Identifier: Apache-2.0
#include "norm.cuh"

// A row belongs to a group of WIDTH threads, with KEEP vectors each; the groups of a block take its rows p, p + P, ...
// in turn. A thread has the same columns of every row and sums dw for them in registers; at the end the groups' sums
// are added in order. This favours many warps that wait for memory over fewer that read rows ahead.
template <typename T, int WIDTH, int KEEP, typename W>
static __device__ __forceinline__ void rmsnorm_bwd_rows(T *dx, float *dw_part, const T *dy,
                                                        const T *x, const W &w, const float *rstd,
                                                        const T *dres, int N, int C, int P)
{
    constexpr int V = vec<T>::N, STEP = WIDTH * V, GROUPS = NJ_THREADS / WIDTH;
    const int group = threadIdx.x / WIDTH, c = threadIdx.x % WIDTH * V;
    const float per_channel = 1.0f / C;
    const bool bypass = dres;
    vec<float> dw[KEEP * V / 4] = {};
    const int64_t apart = (int64_t)GROUPS * P; // rows between two of a group
    int64_t at = (blockIdx.x + (int64_t)group * P) * C + c;
    unsigned turn = 0;
    constexpr bool HELD = KEEP * V == 8; // keeps the norm's weights, if registers allow
    typename vec<T>::raw gain_raw[KEEP];
#pragma unroll
    for (int k = 0; k < KEEP; k++)
        if (HELD && c + k * STEP < C)
            gain_raw[k] = w.read(c + k * STEP);
    const auto gain_at = [&](int k) { return w.gains(HELD ? gain_raw[k] : w.read(c + k * STEP)); };

    for (int64_t first = blockIdx.x; first < N; first += apart, at += apart * C) {
        const int64_t n = first + (int64_t)group * P;
        const int used = n < N ? C : 0; // columns of this group's row
        typename vec<T>::raw dy_raw[KEEP], x_raw[KEEP], dres_raw[KEEP];
        float dot = 0, r = 0;
        if (n < N)
            r = rstd[n];
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            dy_raw[k] = x_raw[k] = dres_raw[k] = {};
            if (c + k * STEP < used) {
                dy_raw[k] = vec<T>::read(dy + at + k * STEP);
                x_raw[k] = vec<T>::read(x + at + k * STEP);
                if (bypass)
                    dres_raw[k] = vec<T>::read(dres + at + k * STEP);
            }
        }
#pragma unroll
        for (int k = 0; k < KEEP; k++)
            if (c + k * STEP < used) {
                const vec<T> g = vec<T>::of(dy_raw[k]), a = vec<T>::of(x_raw[k]), gain = gain_at(k);
#pragma unroll
                for (int i = 0; i < V; i++) {
                    const float ga = g.v[i] * a.v[i];
                    dw[(k * V + i) / 4].v[i % 4] += ga * r;
                    dot += ga * gain.v[i];
                }
            }
        const float slope = group_sum_in_turn<WIDTH>(dot, turn++) * r * r * per_channel;
#pragma unroll
        for (int k = 0; k < KEEP; k++)
            if (c + k * STEP < used) {
                const vec<T> g = vec<T>::of(dy_raw[k]), a = vec<T>::of(x_raw[k]), gain = gain_at(k);
                vec<T> out = vec<T>::of(dres_raw[k]);
#pragma unroll
                for (int i = 0; i < V; i++)
                    out.v[i] += r * (g.v[i] * gain.v[i] - a.v[i] * slope);
                out.store(dx + at + k * STEP);
            }
    }

    if (!dw_part)
        return;
    extern __shared__ __align__(16) float dw_sum[];
    float *out = GROUPS > 1 ? dw_sum + group * C : dw_part + (int64_t)blockIdx.x * C;
#pragma unroll
    for (int i = 0; i < KEEP * V; i += 4)
        if (c + i / V * STEP < C)
            dw[i / 4].store(out + c + i / V * STEP + i % V);
    if (GROUPS == 1)
        return;
    __syncthreads();
#pragma unroll 1
    for (int i = threadIdx.x; i < C; i += NJ_THREADS) {
        float sum = 0;
#pragma unroll
        for (int g = 0; g < GROUPS; g++)
            sum += dw_sum[g * C + i];
        dw_part[(int64_t)blockIdx.x * C + i] = sum;
    }
}

template <typename T, typename W>
static __device__ __forceinline__ void by_width(T *dx, float *dw_part, const T *dy, const T *x,
                                                const W &w, const float *rstd, const T *dres, int N,
                                                int C, int P)
{
    constexpr int EIGHT = 8 / vec<T>::N;
    if (C <= 1024)
        rmsnorm_bwd_rows<T, 128, EIGHT>(dx, dw_part, dy, x, w, rstd, dres, N, C, P);
    else if (C <= 2048)
        rmsnorm_bwd_rows<T, 256, EIGHT>(dx, dw_part, dy, x, w, rstd, dres, N, C, P);
    else if (C <= 4096)
        rmsnorm_bwd_rows<T, 512, EIGHT>(dx, dw_part, dy, x, w, rstd, dres, N, C, P);
    else
        rmsnorm_bwd_rows<T, 512, 2 * EIGHT>(dx, dw_part, dy, x, w, rstd, dres, N, C, P);
}

template <typename T>
static __device__ __forceinline__ void rmsnorm_bwd(T *dx, float *dw_part, const T *dy, const T *x,
                                                   const T *w, const float *rstd, const T *dres,
                                                   int N, int C, int P, float offset)
{
    if (w)
        by_width(dx, dw_part, dy, x, norm_weights<T>{w, offset}, rstd, dres, N, C, P);
    else
        by_width(dx, dw_part, dy, x, norm_offset<T>{offset}, rstd, dres, N, C, P);
}
