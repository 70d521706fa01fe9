// SPDX-License-Identifier: Apache-2.0
//
// norm.cuh: normalization of rows. A row belongs to a group of WIDTH threads, a warp or more; each keeps its share in
// registers, so that a row is read once. The groups of a block run in step, including those without a row, so that a
// barrier of the block serves groups of several warps.
#ifndef NOJIT_NORM_CUH
#define NOJIT_NORM_CUH

#include "common.cuh"

// Return the sum over a group of warps, the same in each of its threads; x is the sum over the thread's warp.
template <int WIDTH>
static __device__ __forceinline__ float sum_of_warps(float x, float (&part)[NJ_THREADS / 32])
{
    const int first = threadIdx.x / WIDTH * (WIDTH / 32);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int i = 0; i < WIDTH / 32; i++)
        sum += part[first + i];
    return sum;
}

// Return the sum over the group, the same in each of its threads. All threads of the block must call it.
template <int WIDTH> static __device__ __forceinline__ float group_sum(float x)
{
    x = warp_sum(x);
    if (WIDTH == 32)
        return x;
    __shared__ float part[NJ_THREADS / 32];
    __syncthreads(); // part may still be read from an earlier call
    return sum_of_warps<WIDTH>(x, part);
}

// Return the same in a loop that counts its iterations: even and odd ones have separate memory, so that one barrier is
// enough.
template <int WIDTH>
static __device__ __forceinline__ float group_sum_in_turn(float x, unsigned turn)
{
    x = warp_sum(x);
    if (WIDTH == 32)
        return x;
    __shared__ __align__(16) float parts[2][NJ_THREADS / 32];
    return sum_of_warps<WIDTH>(x, parts[turn % 2]);
}

// Keep 16 bytes unconverted. Without this the compiler widens them where they are read, and they occupy twice the
// registers while they wait.
static __device__ __forceinline__ void hold(uint4 &x)
{
    asm("" : "+r"(x.x), "+r"(x.y), "+r"(x.z), "+r"(x.w));
}

// Weights of a norm: the gain of channel c is w[c] + offset.
template <typename T> struct norm_weights {
    const T *w;
    float offset;

    __device__ __forceinline__ typename vec<T>::raw read(int c) const
    {
        return vec<T>::read(w + c);
    }
    // Return the gains whose weights were read as `bits`.
    __device__ __forceinline__ vec<T> gains(typename vec<T>::raw bits) const
    {
        vec<T> g = vec<T>::of(bits);
#pragma unroll
        for (int i = 0; i < vec<T>::N; i++)
            g.v[i] += offset;
        return g;
    }
};

// The same without weights: every gain is the offset. This is a type of its own, because a test of the pointer beside
// each load would delay the loads.
template <typename T> struct norm_offset {
    float offset;

    __device__ __forceinline__ typename vec<T>::raw read(int) const { return {}; }
    __device__ __forceinline__ vec<T> gains(typename vec<T>::raw) const
    {
        vec<T> g;
#pragma unroll
        for (int i = 0; i < vec<T>::N; i++)
            g.v[i] = offset;
        return g;
    }
};

// A thread's share of a row of C <= MOST * WIDTH channels, and of the norm's weights.
template <typename T, int WIDTH, int MOST> struct norm_share {
    static constexpr int V = vec<T>::N, KEEP = MOST / V;
    // loads the weights beside the sum, if registers allow
    static constexpr bool GAIN_EARLY = MOST <= 32;
    typename vec<T>::raw keep[KEEP], gain[KEEP];

    static __device__ __forceinline__ int column(int k)
    {
        return (k * WIDTH + (int)(threadIdx.x % WIDTH)) * V;
    }

    // Read the row x, or x + b, which is stored in s and then normalized. Return the reciprocal root. A group without a
    // row of its own (live is false) computes another group's row and stores nothing.
    template <bool ADD, typename W>
    __device__ __forceinline__ float read(T *s, const T *x, const T *b, const W &w, int C,
                                          float eps, bool live)
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
            hold(keep[k]), hold(branch_raw[k]);
            vec<T> a = vec<T>::of(keep[k]);
            if (ADD && c < C) {
                const vec<T> branch = vec<T>::of(branch_raw[k]);
#pragma unroll
                for (int i = 0; i < V; i++)
                    a.v[i] += branch.v[i];
                if (live)
                    a.store(s + c);
                keep[k] = a.bits();
                hold(keep[k]);
                a.set(keep[k]);
            }
#pragma unroll
            for (int i = 0; i < V; i++)
                sum += a.v[i] * a.v[i];
        }
        return root(sum, w, C, eps);
    }

    // Return the reciprocal root of the row, of which this thread's sum of squares is given.
    template <typename W>
    __device__ __forceinline__ float root(float sum, const W &w, int C, float eps)
    {
        const float per_channel = 1.0f / C;
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            gain[k] = {};
            if (GAIN_EARLY && column(k) < C)
                gain[k] = w.read(column(k));
        }
        const float r = rsqrtf(group_sum<WIDTH>(sum) * per_channel + eps);
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            hold(keep[k]);
            if (GAIN_EARLY)
                hold(gain[k]);
        }
        return r;
    }

    // Return part k, normalized.
    template <typename W> __device__ __forceinline__ vec<T> normed(int k, float r, const W &w) const
    {
        const vec<T> g = w.gains(GAIN_EARLY ? gain[k] : w.read(column(k)));
        vec<T> a = vec<T>::of(keep[k]);
#pragma unroll
        for (int i = 0; i < V; i++)
            a.v[i] = a.v[i] * r * g.v[i];
        return a;
    }

    // Store the row, normalized, and its reciprocal root.
    template <typename W>
    __device__ __forceinline__ void store(T *y, float *rstd, float r, const W &w, int C) const
    {
        if (threadIdx.x % WIDTH == 0)
            *rstd = r;
#pragma unroll
        for (int k = 0; k < KEEP; k++)
            if (column(k) < C)
                normed(k, r, w).store(y + column(k));
    }
};

template <typename T, int WIDTH, int MOST, bool ADD, typename W>
static __device__ __forceinline__ void norm_row(T *y, T *s, float *rstd, const T *x, const T *b,
                                                const W &w, int C, float eps, bool live)
{
    norm_share<T, WIDTH, MOST> row;
    const float r = row.template read<ADD>(s, x, b, w, C, eps, live);
    if (live)
        row.store(y, rstd, r, w, C);
}

template <int W, int M> struct norm_width {
    static constexpr int value = W, most = M;
};

template <int WIDTH, int MOST, typename F>
static __device__ __forceinline__ void norm_row_of_width(int N, F row)
{
    const int64_t n = (int64_t)block_from_last() * (NJ_THREADS / WIDTH) + threadIdx.x / WIDTH;
    const bool live = WIDTH == NJ_THREADS || n < N; // no block starts without a row
    row(norm_width<WIDTH, MOST>(), live ? n : N - 1, live);
}

constexpr int LONGEST_KEPT = NJ_THREADS * 40; // channels of a row

// Call row(width, n, live) for this thread's row, of at most LONGEST_KEPT channels. A row of up to 1024 channels
// belongs to one warp, up to 2048 to two, up to 4096 to four, above to the block; the grid of the contracts matches.
template <typename F> static __device__ __forceinline__ void each_norm_row(int N, int C, F row)
{
    if (C <= 1024)
        norm_row_of_width<32, 32>(N, row);
    else if (C <= 2048)
        norm_row_of_width<64, 32>(N, row);
    else if (C <= 4096)
        norm_row_of_width<128, 32>(N, row);
    else
        norm_row_of_width<NJ_THREADS, 40>(N, row);
}

template <typename T, bool ADD, typename W>
static __device__ __forceinline__ void norm_rows(T *y, T *s, float *rstd, const T *x, const T *b,
                                                 const W &w, int N, int C, float eps)
{
    each_norm_row(N, C, [&](auto width, int64_t n, bool live) {
        const int64_t at = n * C;
        norm_row<T, width.value, width.most, ADD>(y + at, ADD ? s + at : s, rstd + n, x + at,
                                                  ADD ? b + at : b, w, C, eps, live);
    });
}

#endif
