// SPDX-License-Identifier: Apache-2.0
#include "gemv_mma.cuh"

// A row of the weights belongs to one, two or four warps, so that a short matrix with long rows has work for the whole
// GPU; each takes a stretch of it, and their sums are added in order.
template <typename T, int M>
static __device__ __forceinline__ void by_lanes(T *s, const T *x, const T *w, int N, int K,
                                                float scale)
{
    constexpr int ROWS = M > 1 ? 2 : 1, UNROLL = M > 1 ? 5 : 6;
    constexpr int V = vec<T>::N, WARPS = NJ_THREADS / 32;
    __shared__ float part[WARPS][ROWS * M];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int shift = (K > 1024) + (K > 2048), which = warp & ((1 << shift) - 1);
    const int64_t first = ((int64_t)blockIdx.x * (WARPS >> shift) + (warp >> shift)) * ROWS;
    const int rounds = (K / V + 31) / 32, stretch = (rounds + (1 << shift) - 1) >> shift;
    const int begin = which * stretch * 32, end = min(K / V, begin + stretch * 32);
    const auto weights = [&](int r) { return w + row_below(first + r, N) * K; };
    const auto rows_of_x = [&](int m, int c) {
        return vec<T>::read(x + (int64_t)m * K + (int64_t)c * V);
    };
    gemv_sums<T, M, ROWS, UNROLL> sums;
    sums.fetch(weights, begin + lane, end);
    nj_kernel_begin();

    // In lane r M + m of a row's first warp: the value that its sum is added to.
    const int64_t row = first + lane / M;
    const bool mine = which == 0 && lane < ROWS * M && row < N;
    T *to = s + (int64_t)(lane % M) * N + row;
    const float held = mine ? to_f32(*to) : 0;
    sums.clear();
    for (int at = begin; at < end;) {
        sums.add(rows_of_x, at + lane, end);
        at += UNROLL * 32;
        if (at < end)
            sums.fetch(weights, at + lane, end);
    }
    const float share = sums.finish();
    if (lane < ROWS * M)
        part[warp][lane] = share;
    __syncthreads();
    if (!mine)
        return;
    float sum = held;
    for (int p = 0; p < 1 << shift; p++)
        sum += scale * part[warp + p][lane];
    *to = from_f32<T>(sum);
}

// The warps of a block share eight rows of the weights.
template <typename T, int M>
static __device__ __forceinline__ void by_mma(T *s, const T *x, const T *w, int N, int K,
                                              float scale)
{
    constexpr int V = vec<T>::N, UNROLL = 10, SPLIT = NJ_THREADS / 32;
    using sums_of = mma_sums<M, 1, UNROLL>;
    __shared__ float part[SPLIT * M * 8];
    const int first = blockIdx.x * 8;
    const T *its = w + row_below(first + lane_id() / 4, N) * K;
    const auto weights = [&](int) { return its; };
    const auto rows_of_x = [&](int m, int c) {
        return vec<T>::read(x + ((int64_t)m * (K / V) + c) * V);
    };
    mma_share<SPLIT> mine(K / V);
    sums_of sums;
    sums.fetch(weights, mine.begin, mine.end);
    nj_kernel_begin();
    while (mine.begin < mine.end) {
        sums.add(rows_of_x, mine.begin, mine.end);
        mine.begin += sums_of::SPAN;
        sums.fetch(weights, mine.begin, mine.end);
    }
    sums.put(part);
    __syncthreads();
    for (int i = threadIdx.x; i < M * 8; i += NJ_THREADS) {
        const int m = i / 8, column = i % 8;
        if (column >= N - first)
            continue;
        T *to = s + (int64_t)m * N + first + column;
        *to = from_f32<T>(to_f32(*to) + scale * mma_sum<M, 8, SPLIT>(part, 0, m, column));
    }
}

template <typename T, int M>
static __device__ __forceinline__ void gemv_add(T *s, const T *x, const T *w, int N, int K,
                                                float scale)
{
    if constexpr (M < 8)
        by_lanes<T, M>(s, x, w, N, K, scale);
    else
        by_mma<T, M>(s, x, w, N, K, scale);
}
