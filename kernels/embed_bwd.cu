// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Adds every STEP-th row of a run from `first` on: the N columns at dy.
template <int STEP, typename T, int N>
static __device__ __forceinline__ void add_rows(float (&sum)[N], const T *dy, const int *order,
                                                int first, int end, int C)
{
    constexpr int BATCH = 8; // rows in flight
    for (; first < end; first += STEP * BATCH) {
        typename vec<T, N>::raw raw[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (first + STEP * k < end)
                raw[k] = vec<T, N>::read(dy + (int64_t)order[first + STEP * k] * C);
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            if (first + STEP * k < end) {
                vec<T, N> g;
                g.set(raw[k]);
#pragma unroll
                for (int i = 0; i < N; i++)
                    sum[i] += g.v[i];
            }
    }
}

static __device__ __forceinline__ void add_to(float *out, const float (&sum)[4])
{
    vec<float> total;
    total.load(out);
#pragma unroll
    for (int i = 0; i < 4; i++)
        total.v[i] += sum[i];
    total.store(out);
}

// Block r sums run r. Only one block touches a row of dw, and the order of sums is that of the run:
// of all its rows where there are few, else of each warp's rows, then of the warps.
template <typename T>
static __device__ __forceinline__ void embed_bwd(float *dw, const T *dy, const int *ids,
                                                 const int *order, const int *runs, int N, int C,
                                                 int V)
{
    constexpr int WARPS = NJ_THREADS / 32, MANY = 2 * WARPS;
    __shared__ float part[WARPS][4][32];
    const int begin = runs[blockIdx.x], end = runs[blockIdx.x + 1];
    if (begin >= end)
        return;
    float *out = dw + (int64_t)ids[order[begin]] * C;
    if (end - begin < MANY) {
        for (int c = threadIdx.x * 4; c < C; c += NJ_THREADS * 4) {
            float sum[4] = {};
            add_rows<1, T>(sum, dy + c, order, begin, end, C);
            add_to(out + c, sum);
        }
        return;
    }
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int c = lane * 4; c - lane * 4 < C; c += 4 * 32) {
        float sum[4] = {};
        if (c < C)
            add_rows<WARPS, T>(sum, dy + c, order, begin + warp, end, C);
        __syncthreads(); // part has been read
#pragma unroll
        for (int i = 0; i < 4; i++)
            part[warp][i][lane] = sum[i];
        __syncthreads();
        if (warp > 0 || c >= C)
            continue;
#pragma unroll
        for (int k = 1; k < WARPS; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sum[i] += part[k][i][lane];
        add_to(out + c, sum);
    }
}
