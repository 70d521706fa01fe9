// SPDX-License-Identifier: Apache-2.0
#include "gemv.cuh"

// A row of the weights belongs to one warp, two or four, so that a short matrix of long rows has work for a whole GPU;
// they are added up in their order.
template <typename T, int M>
static __device__ __forceinline__ void gemv_add(T *s, const T *x, const T *w, int N, int K)
{
    constexpr int ROWS = M > 1 ? 2 : 1, UNROLL = M > 1 ? 5 : 6, SPAN = UNROLL;
    constexpr int V = vec<T>::N, WARPS = NJ_THREADS / 32;
    __shared__ float part[WARPS][ROWS * M];
    const int shift = (K > 1024) + (K > 2048), parts = 1 << shift;
    const int chunks = K / V, step = 32 * parts;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int64_t first = ((int64_t)blockIdx.x * (WARPS >> shift) + (warp >> shift)) * ROWS;
    const auto weights = [&](int r) { return w + row_below(first + r, N) * K; };
    const auto rows_of_x = [&](int m, int c) {
        return vec<T>::read(x + (int64_t)m * K + (int64_t)c * V);
    };
    gemv_sums<T, M, ROWS, UNROLL> sums;
    int at = (warp & (parts - 1)) * 32 + lane;
    sums.fetch(weights, at, step, chunks);

    // Of lane r M + m of a row's first warp: what it adds to.
    const int64_t row = first + lane / M;
    const bool mine = (warp & (parts - 1)) == 0 && lane < ROWS * M && row < N;
    T *to = s + (int64_t)(lane % M) * N + row;
    const float held = mine ? to_f32(*to) : 0;
    sums.clear();
    for (;;) {
        sums.add(rows_of_x, at, step, chunks);
        at += SPAN * step;
        if (at - lane >= chunks)
            break;
        sums.fetch(weights, at, step, chunks);
    }
    const float share = sums.finish();
    if (lane < ROWS * M)
        part[warp][lane] = share;
    __syncthreads();
    if (!mine)
        return;
    float sum = held;
    for (int p = 0; p < parts; p++)
        sum += part[warp + p][lane];
    *to = from_f32<T>(sum);
}
