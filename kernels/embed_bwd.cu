// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Add every STEP-th row of a run, from `first` on, in the columns at dy.
template <int STEP, typename T>
static __device__ __forceinline__ void add_rows(float (&sum)[vec<T>::N], const T *dy,
                                                const int *order, int first, int end, int C)
{
    constexpr int BATCH = 8; // rows in flight
    for (; first < end; first += STEP * BATCH) {
        typename vec<T>::raw raw[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (first + STEP * k < end)
                raw[k] = vec<T>::read(dy + (int64_t)order[first + STEP * k] * C);
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (first + STEP * k < end) {
                const vec<T> g = vec<T>::of(raw[k]);
#pragma unroll
                for (int i = 0; i < vec<T>::N; i++)
                    sum[i] += g.v[i];
            }
    }
}

template <int N>
static __device__ __forceinline__ void add_to(float *out, const float (&sum)[N], float scale)
{
#pragma unroll
    for (int i = 0; i < N; i += 4) {
        vec<float> total;
        total.load(out + i);
#pragma unroll
        for (int k = 0; k < 4; k++)
            total.v[k] += scale * sum[i + k];
        total.store(out + i);
    }
}

// Sum run r in block r. Only one block touches a row of dw, and the order of the sum is fixed: that of all rows of the
// run if there are few, otherwise that of each warp's rows, then that of the warps.
template <typename T>
static __device__ __forceinline__ void embed_bwd(float *dw, const T *dy, const int *ids,
                                                 const int *order, const int *runs, int N, int C,
                                                 int V, float scale)
{
    constexpr int E = vec<T>::N, WARPS = NJ_THREADS / 32, FEW = 2 * WARPS;
    __shared__ float part[WARPS][E][32];
    const int begin = runs[blockIdx.x], end = runs[blockIdx.x + 1];
    if (begin >= end)
        return;
    float *out = dw + (int64_t)ids[order[begin]] * C;
    if (end - begin <= FEW) {
        for (int c = threadIdx.x * E; c < C; c += NJ_THREADS * E) {
            float sum[E] = {};
            add_rows<1>(sum, dy + c, order, begin, end, C);
            add_to(out + c, sum, scale);
        }
        return;
    }
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int first = 0; first < C; first += 32 * E) {
        const int c = first + lane * E;
        float sum[E] = {};
        if (c < C)
            add_rows<WARPS>(sum, dy + c, order, begin + warp, end, C);
        __syncthreads(); // part has been read
#pragma unroll
        for (int i = 0; i < E; i++)
            part[warp][i][lane] = sum[i];
        __syncthreads();
        if (warp > 0 || c >= C)
            continue;
#pragma unroll
        for (int k = 1; k < WARPS; k++)
#pragma unroll
            for (int i = 0; i < E; i++)
                sum[i] += part[k][i][lane];
        add_to(out + c, sum, scale);
    }
}
