// SPDX-License-Identifier: Apache-2.0
//
// norm.cuh: a row of a norm belongs to a group of WIDTH threads, a warp or more; each keeps its
// share in registers, so that a row is read once.
#ifndef NOJIT_NORM_CUH
#define NOJIT_NORM_CUH

#include "common.cuh"

// Waits for the threads of the group that the caller is in.
template <int WIDTH> static __device__ __forceinline__ void group_barrier()
{
    asm volatile("bar.sync %0, %1;" ::"r"(1 + threadIdx.x / WIDTH), "n"(WIDTH) : "memory");
}

// Sum over the group, the same in each of its threads, all of which must call it.
template <int WIDTH> static __device__ __forceinline__ float group_sum(float x)
{
    x = warp_sum(x);
    if (WIDTH == 32)
        return x;
    __shared__ float part[NJ_THREADS / 32];
    const int first = threadIdx.x / WIDTH * (WIDTH / 32);
    group_barrier<WIDTH>(); // part may still be read from an earlier call
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    group_barrier<WIDTH>();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < WIDTH / 32; i++)
        sum += part[first + i];
    return sum;
}

// Normalises the row x, or x + b where s takes the sum, which is what the norm sees.
// C <= 40 * WIDTH.
template <typename T, int WIDTH, bool ADD>
static __device__ __forceinline__ void norm_row(T *y, T *s, float *rstd, const T *x, const T *b,
                                                const T *w, int C, float eps)
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
            a.store(s + c);
            keep[k] = a.bits();
            a.set(keep[k]);
        }
#pragma unroll
        for (int i = 0; i < V; i++)
            sum += a.v[i] * a.v[i];
    }
    const float r = rsqrtf(group_sum<WIDTH>(sum) / C + eps);
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
    if (row >= N)
        return;
    const int64_t at = row * C;
    if (width == 32)
        norm_row<T, 32, ADD>(y + at, s + at, rstd + row, x + at, b + at, w, C, eps);
    else if (width == 64)
        norm_row<T, 64, ADD>(y + at, s + at, rstd + row, x + at, b + at, w, C, eps);
    else
        norm_row<T, NJ_THREADS, ADD>(y + at, s + at, rstd + row, x + at, b + at, w, C, eps);
}

#endif
