// SPDX-License-Identifier: Apache-2.0
#include "expert_gemm.cuh"

// Add the biases of two columns, of which the first is an even one; those from `columns` on are not read.
static __device__ __forceinline__ uint32_t biased(const lp *bias, int column, int columns, float x,
                                                  float y)
{
    if (bias && column < columns) {
        x += to_f32(bias[column]);
        y += to_f32(bias[column + 1]);
    }
    return pack2(x, y);
}

template <typename T>
static __device__ __forceinline__ void
expert_gemm_tma(T *y, const T *x, const int *row, const T *, const T *bias, const int *first, int,
                int, int E, int M, int C, int ld, int, const nj_tiles &x_tiles,
                const nj_tiles &w_tiles)
{
    expert_products<TILE_N>(
        x, row, first, E, M, C, x_tiles, w_tiles,
        [&](const expert_tile &t, int &half, int &other) {
            half = t.expert * M + t.column;
            other = half + HALF_N;
        },
        [&](const expert_tile &t, int place, int rows, const float(&d)[TILE_N / 8][4]) {
            const lp *const its = bias ? bias + (int64_t)t.expert * M + t.column : nullptr;
            const int columns = M - t.column, t2 = lane_id() % 4 * 2;
            const auto value = [&](int n, int e) {
                return biased(its, 8 * n + t2, columns, d[n][e], d[n][e + 1]);
            };
#pragma unroll
            for (int q = 0; q < TILE_N / 32; q++)
                store32(y + (int64_t)place * ld + t.column, ld, q, rows, columns, value);
        });
}
