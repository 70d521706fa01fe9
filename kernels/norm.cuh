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

// A thread's share of a row of C <= 40 * WIDTH channels.
template <typename T, int WIDTH> struct norm_share {
    static constexpr int V = vec<T>::N, KEEP = 40 / V;
    typename vec<T>::raw keep[KEEP];

    static __device__ __forceinline__ int column(int k)
    {
        return (k * WIDTH + (int)(threadIdx.x % WIDTH)) * V;
    }

    // Reads the row x, or x + b where s takes the sum, which is what the norm sees. Returns the
    // reciprocal root. A group without a row of its own (live is false) computes another's and
    // stores nothing.
    template <bool ADD>
    __device__ __forceinline__ float read(T *s, const T *x, const T *b, int C, float eps, bool live)
    {
        typename vec<T>::raw branch_raw[KEEP];
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const int c = column(k);
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
            const int c = column(k);
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
        return rsqrtf(group_sum<WIDTH>(sum) / C + eps);
    }

    // Part k, normalised.
    __device__ __forceinline__ vec<T> normed(int k, float r, const T *w) const
    {
        vec<T> a, g;
        a.set(keep[k]);
        g.load(w + column(k));
#pragma unroll
        for (int i = 0; i < V; i++)
            a.v[i] = a.v[i] * r * g.v[i];
        return a;
    }
};

template <typename T, int WIDTH, bool ADD>
static __device__ __forceinline__ void norm_row(T *y, T *s, float *rstd, const T *x, const T *b,
                                                const T *w, int C, float eps, bool live)
{
    norm_share<T, WIDTH> row;
    const float r = row.template read<ADD>(s, x, b, C, eps, live);
    if (!live)
        return;
    if (threadIdx.x % WIDTH == 0)
        *rstd = r;
#pragma unroll
    for (int k = 0; k < row.KEEP; k++)
        if (row.column(k) < C)
            row.normed(k, r, w).store(y + row.column(k));
}

template <int W> struct norm_width {
    static constexpr int value = W;
};

// Calls row(width, n, live) for the row of this thread. A row belongs to a warp up to 1280
// channels, to two up to 2560, to the block above: the grid of the contracts.
template <typename F> static __device__ __forceinline__ void each_norm_row(int N, int C, F row)
{
    const int width = C <= 1280 ? 32 : C <= 2560 ? 64 : NJ_THREADS;
    const int64_t n = (int64_t)blockIdx.x * (NJ_THREADS / width) + threadIdx.x / width;
    const bool live = n < N;
    const int64_t from = live ? n : N - 1;
    if (width == 32)
        row(norm_width<32>(), from, live);
    else if (width == 64)
        row(norm_width<64>(), from, live);
    else
        row(norm_width<NJ_THREADS>(), from, live);
}

template <typename T, bool ADD>
static __device__ __forceinline__ void norm_rows(T *y, T *s, float *rstd, const T *x, const T *b,
                                                 const T *w, int N, int C, float eps)
{
    each_norm_row(N, C, [&](auto width, int64_t n, bool live) {
        const int64_t at = n * C;
        norm_row<T, width.value, ADD>(y + at, s + at, rstd + n, x + at, b + at, w, C, eps, live);
    });
}

#endif
