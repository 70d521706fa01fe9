// SPDX-License-Identifier: Apache-2.0
#include "gemv_mma.cuh"

// A warp takes a row of gate and the same row of up.
template <typename T, int M>
static __device__ __forceinline__ void by_lanes(uint4 *rows, T *a, const T *x, const T *g,
                                                const T *w, int I, int C, float eps, float offset)
{
    gemv_of_normed<T, M, 2, 4>(
        rows, x, g, C, eps, offset, I,
        [&](int64_t row, int r) { return w + ((int64_t)r * I + row) * C; },
        [&](int64_t row, float sum) {
            const int lane = threadIdx.x % 32;
            const float gate = to_f32(from_f32<T>(sum)); // rounded as if it were stored
            const float up = __shfl_xor_sync(0xffffffffu, gate, M);
            if (lane < M)
                a[(int64_t)lane * I + row] = from_f32<T>(gate * sigmoid(gate) * up);
        });
}

// Four warps take eight rows of gate and the same eight of up.
template <typename T, int M>
static __device__ __forceinline__ void by_mma(uint4 *rows, T *a, const T *x, const T *g, const T *w,
                                              int I, int C, float eps, float offset)
{
    constexpr int SPLIT = 4, COLUMNS = NJ_THREADS / 32 / SPLIT * 8;
    const int first = blockIdx.x * COLUMNS;
    const T *its = w + row_below(first + threadIdx.x / 32 / SPLIT * 8 + lane_id() / 4, I) * C;
    const float *part = products_of_normed<T, M, 2, SPLIT>(
        rows, x, g, C, eps, offset, [&](int n) { return its + (int64_t)n * I * C; });
    for (int i = threadIdx.x; i < M * COLUMNS; i += NJ_THREADS) {
        const int m = i / COLUMNS, column = i % COLUMNS;
        const auto rounded = [&](int half) {
            return to_f32(from_f32<T>(
                mma_sum<M, 16, SPLIT>(part, column / 8 * SPLIT, m, column % 8 + 8 * half)));
        };
        const float sum = rounded(0), beside = rounded(1);
        if (column < I - first)
            a[(int64_t)m * I + first + column] = from_f32<T>(sum * sigmoid(sum) * beside);
    }
}

template <typename T, int M>
static __device__ __forceinline__ void gemv_norm_swiglu(T *a, const T *x, const T *g, const T *w,
                                                        int I, int C, float eps, float offset)
{
    extern __shared__ uint4 rows[];
    if constexpr (M < 8)
        by_lanes<T, M>(rows, a, x, g, w, I, C, eps, offset);
    else
        by_mma<T, M>(rows, a, x, g, w, I, C, eps, offset);
}
