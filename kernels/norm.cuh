// SPDX-License-Identifier: Apache-2.0
//
// norm.cuh: a row of a norm belongs to a group of WIDTH threads, a warp or more; each keeps its
// share in registers, so that a row is read once. The groups of a block go in step, those without a
// row, too, so that a barrier of the block serves groups of several warps.
#ifndef NOJIT_NORM_CUH
#define NOJIT_NORM_CUH

#include "common.cuh"

// Sum over the group, the same in each of its threads. All threads of the block must call it.
template <int WIDTH> static __device__ __forceinline__ float group_sum(float x)
{
    x = warp_sum(x);
    if (WIDTH == 32)
        return x;
    __shared__ float part[NJ_THREADS / 32];
    const int first = threadIdx.x / WIDTH * (WIDTH / 32);
    __syncthreads(); // part may still be read from an earlier call
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < WIDTH / 32; i++)
        sum += part[first + i];
    return sum;
}

// Normalises the row x, or x + b where s takes the sum, which is what the norm sees. A group without
// a row of its own (live is false) computes another's and stores nothing. C <= 40 * WIDTH.
template <typename T, int WIDTH, bool ADD>
static __device__ __forceinline__ void norm_row(T *y, T *s, float *rstd, const T *x, const T *b,
                                                const T *w, int C, float eps, bool live)
{
    constexpr int V = vec<T>::N, KEEP = 40 / V;
    const int lane = threadIdx.x % WIDTH;
    typename vec<T>::raw keep[KEEP], branch_raw[KEEP];
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int c = (k * WIDTH + lane) * V;
        keep[k] = branch_raw[k] = {};
        if (c < C) {
            keep[k] = vec<T>::read(x + c);
            if (ADD)
                branch_raw[k] = vec<T>::read(b + c);
        }
    }
    float sum = 0;
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int c = (k * WIDTH + lane) * V;
        vec<T> a;
        a.set(keep[k]);
        if (ADD && c < C) {
            vec<T> branch;
            branch.set(branch_raw[k]);
#pragma unroll
            for (int i = 0; i < V; i++)
                a.v[i] += branch.v[i];
            if (live)
                a.store(s + c);
            keep[k] = a.bits();
            a.set(keep[k]);
        }
#pragma unroll
        for (int i = 0; i < V; i++)
            sum += a.v[i] * a.v[i];
    }
    const float r = rsqrtf(group_sum<WIDTH>(sum) / C + eps);
    if (!live)
        return;
    if (lane == 0)
        *rstd = r;
#pragma unroll
    for (int k = 0; k < KEEP; k++) {
        const int c = (k * WIDTH + lane) * V;
        if (c < C) {
            vec<T> a, g;
            a.set(keep[k]);
            g.load(w + c);
#pragma unroll
            for (int i = 0; i < V; i++)
                a.v[i] = a.v[i] * r * g.v[i];
            a.store(y + c);
        }
    }
}

// A row belongs to a warp up to 1280 channels, to two up to 2560, to the block above: the grid of
// the contracts.
template <typename T, bool ADD>
static __device__ __forceinline__ void norm_rows(T *y, T *s, float *rstd, const T *x, const T *b,
                                                 const T *w, int N, int C, float eps)
{
    const int width = C <= 1280 ? 32 : C <= 2560 ? 64 : NJ_THREADS;
    const int64_t row = (int64_t)blockIdx.x * (NJ_THREADS / width) + threadIdx.x / width;
    const bool live = row < N;
    const int64_t from = live ? row : N - 1, at = from * C;
    if (width == 32)
        norm_row<T, 32, ADD>(y + at, s + at, rstd + from, x + at, b + at, w, C, eps, live);
    else if (width == 64)
        norm_row<T, 64, ADD>(y + at, s + at, rstd + from, x + at, b + at, w, C, eps, live);
    else
        norm_row<T, NJ_THREADS, ADD>(y + at, s + at, rstd + from, x + at, b + at, w, C, eps, live);
}

#endif
