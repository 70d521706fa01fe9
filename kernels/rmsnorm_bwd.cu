// SPDX-License-Identifier: Apache-2.0
#include "norm.cuh"

// A group of WIDTH threads a row: the block's groups take its rows p, p + P, ... in turn. A thread
// owns the same columns of every row and sums dw for them in registers; at the end those of the
// groups are added in order. C <= 32 * WIDTH.
template <typename T, int WIDTH>
static __device__ __forceinline__ void rmsnorm_bwd_rows(T *dx, float *dw_part, const T *dy,
                                                        const T *x, const T *w, const float *rstd,
                                                        const T *dres, int N, int C, int P)
{
    constexpr int V = vec<T>::N, KEEP = 32 / V, GROUPS = NJ_THREADS / WIDTH;
    extern __shared__ __align__(16) float dw_sum[];
    const int group = threadIdx.x / WIDTH, lane = threadIdx.x % WIDTH;
    float dw[KEEP][V] = {};

    for (int64_t first = blockIdx.x; first < N; first += (int64_t)GROUPS * P) {
        const int64_t n = first + (int64_t)group * P, row = n * C;
        const int used = n < N ? C : 0; // columns of this group's row
        typename vec<T>::raw dy_raw[KEEP], x_raw[KEEP];
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const int c = (k * WIDTH + lane) * V;
            dy_raw[k] = x_raw[k] = {};
            if (c < used) {
                dy_raw[k] = vec<T>::read(dy + row + c);
                x_raw[k] = vec<T>::read(x + row + c);
            }
        }
        const float r = n < N ? rstd[n] : 0;
        float dot = 0;
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const int c = (k * WIDTH + lane) * V;
            vec<T> g, a, gain;
            g.set(dy_raw[k]);
            a.set(x_raw[k]);
            gain.set({});
            if (c < used)
                gain.load(w + c);
#pragma unroll
            for (int i = 0; i < V; i++) {
                const float gh = g.v[i] * (a.v[i] * r);
                dw[k][i] += gh;
                dot += gh * gain.v[i];
            }
        }
        const float mean = group_sum<WIDTH>(dot) / C;
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const int c = (k * WIDTH + lane) * V;
            if (c < used) {
                vec<T> g, a, gain, out;
                g.set(dy_raw[k]);
                a.set(x_raw[k]);
                gain.load(w + c);
                out.set({});
                if (dres)
                    out.load(dres + row + c);
#pragma unroll
                for (int i = 0; i < V; i++)
                    out.v[i] += r * (g.v[i] * gain.v[i] - a.v[i] * r * mean);
                out.store(dx + row + c);
            }
        }
    }

#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int c = (k * WIDTH + lane) * V;
        if (c < C)
#pragma unroll
            for (int i = 0; i < V; i++)
                dw_sum[group * C + c + i] = dw[k][i];
    }
    __syncthreads();
    for (int c = threadIdx.x; c < C; c += NJ_THREADS) {
        float sum = 0;
        for (int g = 0; g < GROUPS; g++)
            sum += dw_sum[g * C + c];
        dw_part[(int64_t)blockIdx.x * C + c] = sum;
    }
}

template <typename T>
static __device__ __forceinline__ void rmsnorm_bwd(T *dx, float *dw_part, const T *dy, const T *x,
                                                   const T *w, const float *rstd, const T *dres,
                                                   int N, int C, int P)
{
    if (C <= 1024)
        rmsnorm_bwd_rows<T, 32>(dx, dw_part, dy, x, w, rstd, dres, N, C, P);
    else if (C <= 2048)
        rmsnorm_bwd_rows<T, 64>(dx, dw_part, dy, x, w, rstd, dres, N, C, P);
    else
        rmsnorm_bwd_rows<T, NJ_THREADS>(dx, dw_part, dy, x, w, rstd, dres, N, C, P);
}
