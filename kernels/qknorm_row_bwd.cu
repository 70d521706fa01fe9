// SPDX-License-Identifier: Apache-2.0
#include "norm.cuh"

// Compute the gradient of C elements of the block's rows, queries or keys: those of a row belong to a group of WIDTH
// threads, with KEEP vectors each, and the groups of a block take its rows p, p + P, ... in turn. A thread has the same
// columns of every row and sums dw for them in registers; at the end the groups' sums are added in order.
template <typename T, int WIDTH, int KEEP>
static __device__ __forceinline__ void back_rows(T *d, float *dw_part, const T *x, const T *w,
                                                 const float *rstd, int C, int width, int N, int P)
{
    constexpr int V = vec<T>::N, STEP = WIDTH * V, GROUPS = NJ_THREADS / WIDTH;
    extern __shared__ __align__(16) float sums[]; // [GROUPS][C]
    const int group = threadIdx.x / WIDTH, c = threadIdx.x % WIDTH * V;
    const float per_element = 1.0f / C;
    vec<float> dw[KEEP * V / 4] = {};
    unsigned turn = 0;
    for (int64_t first = blockIdx.x; first < N; first += (int64_t)GROUPS * P) {
        const int64_t n = first + (int64_t)group * P, at = n * width + c;
        const int used = n < N ? C : 0; // columns of this group's row
        typename vec<T>::raw d_raw[KEEP], x_raw[KEEP];
        float dot = 0, r = 0;
        if (n < N)
            r = rstd[2 * n];
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            d_raw[k] = x_raw[k] = {};
            if (c + k * STEP < used) {
                d_raw[k] = vec<T>::read(d + at + k * STEP);
                x_raw[k] = vec<T>::read(x + at + k * STEP);
            }
        }
#pragma unroll
        for (int k = 0; k < KEEP; k++)
            if (c + k * STEP < used) {
                const vec<T> g = vec<T>::of(d_raw[k]), a = vec<T>::of(x_raw[k]);
                const vec<T> gain = vec<T>::of(vec<T>::read(w + c + k * STEP));
#pragma unroll
                for (int i = 0; i < V; i++) {
                    const float ga = g.v[i] * a.v[i];
                    dw[(k * V + i) / 4].v[i % 4] += ga * r;
                    dot += ga * gain.v[i];
                }
            }
        const float slope = group_sum_in_turn<WIDTH>(dot, turn++) * r * r * per_element;
#pragma unroll
        for (int k = 0; k < KEEP; k++)
            if (c + k * STEP < used) {
                const vec<T> a = vec<T>::of(x_raw[k]);
                const vec<T> gain = vec<T>::of(vec<T>::read(w + c + k * STEP));
                vec<T> g = vec<T>::of(d_raw[k]);
#pragma unroll
                for (int i = 0; i < V; i++)
                    g.v[i] = r * (g.v[i] * gain.v[i] - a.v[i] * slope);
                g.store(d + at + k * STEP);
            }
    }
    float *own = dw_part + (int64_t)blockIdx.x * C, *out = GROUPS > 1 ? sums + group * C : own;
#pragma unroll
    for (int i = 0; i < KEEP * V; i += 4)
        if (c + i / V * STEP < C)
            dw[i / 4].store(out + c + i / V * STEP + i % V);
    __syncthreads(); // also before the memory of sums is used again
    if (GROUPS > 1) {
        for (int i = threadIdx.x; i < C; i += NJ_THREADS) {
            float sum = 0;
#pragma unroll
            for (int g = 0; g < GROUPS; g++)
                sum += sums[g * C + i];
            own[i] = sum;
        }
        __syncthreads();
    }
}

template <typename T>
static __device__ __forceinline__ void back_part(T *d, float *dw_part, const T *x, const T *w,
                                                 const float *rstd, int C, int width, int N, int P)
{
    constexpr int EIGHT = 8 / vec<T>::N;
    if (C <= 1024)
        back_rows<T, 128, EIGHT>(d, dw_part, x, w, rstd, C, width, N, P);
    else if (C <= 2048)
        back_rows<T, 256, EIGHT>(d, dw_part, x, w, rstd, C, width, N, P);
    else if (C <= 4096)
        back_rows<T, 512, EIGHT>(d, dw_part, x, w, rstd, C, width, N, P);
    else
        back_rows<T, 512, 2 * EIGHT>(d, dw_part, x, w, rstd, C, width, N, P);
}

// Take the queries of all of the block's rows, then the keys, so that a thread holds one sum at a time.
template <typename T>
static __device__ __forceinline__ void
qknorm_row_bwd(T *dqkv, float *dwq_part, float *dwk_part, const T *x, const float *rstd,
               const T *wq, const T *wk, int N, int H, int K, int D, int P)
{
    const int q = H * D, k = K * D;
    back_part(dqkv, dwq_part, x, wq, rstd, q, q + 2 * k, N, P);
    back_part(dqkv + q, dwk_part, x + q, wk, rstd + 1, k, q + 2 * k, N, P);
}
