// SPDX-License-Identifier: Apache-2.0
#include "gemv_mma.cuh"

// A warp takes one row of the weights, or two if there is more than one row of x.
template <typename T, int M>
static __device__ __forceinline__ void by_lanes(uint4 *rows, T *y, const T *x, const T *g,
                                                const T *w, const T *b, int N, int C, int ld,
                                                float eps, float offset)
{
    constexpr int ROWS = M > 1 ? 2 : 1;
    gemv_of_normed<T, M, ROWS, 4>(
        rows, x, g, C, eps, offset, (N + ROWS - 1) / ROWS,
        [&](int64_t n, int r) { return w + row_below(n * ROWS + r, N) * C; },
        [&](int64_t n, float sum) {
            const int lane = threadIdx.x % 32;
            const int64_t row = n * ROWS + lane / M;
            if (lane >= ROWS * M || row >= N)
                return;
            if (b)
                sum += to_f32(b[row]);
            y[(int64_t)(lane % M) * ld + row] = from_f32<T>(sum);
        });
}

// Four warps take eight rows of the weights.
template <typename T, int M>
static __device__ __forceinline__ void by_mma(uint4 *rows, T *y, const T *x, const T *g, const T *w,
                                              const T *b, int N, int C, int ld, float eps,
                                              float offset)
{
    constexpr int SPLIT = 4, COLUMNS = NJ_THREADS / 32 / SPLIT * 8;
    const int first = blockIdx.x * COLUMNS;
    const T *its = w + row_below(first + threadIdx.x / 32 / SPLIT * 8 + lane_id() / 4, N) * C;
    const float *part =
        products_of_normed<T, M, 1, SPLIT>(rows, x, g, C, eps, offset, [&](int) { return its; });
    for (int i = threadIdx.x; i < M * COLUMNS; i += NJ_THREADS) {
        const int m = i / COLUMNS, column = i % COLUMNS;
        if (column >= N - first)
            continue;
        float sum = mma_sum<M, 8, SPLIT>(part, column / 8 * SPLIT, m, column % 8);
        sum += b ? to_f32(b[first + column]) : 0;
        y[(int64_t)m * ld + first + column] = from_f32<T>(sum);
    }
}

template <typename T, int M>
static __device__ __forceinline__ void gemv_norm(T *y, const T *x, const T *g, const T *w,
                                                 const T *b, int N, int C, int ld, float eps,
                                                 float offset)
{
    extern __shared__ uint4 rows[];
    if constexpr (M < 8)
        by_lanes<T, M>(rows, y, x, g, w, b, N, C, ld, eps, offset);
    else
        by_mma<T, M>(rows, y, x, g, w, b, N, C, ld, eps, offset);
}
