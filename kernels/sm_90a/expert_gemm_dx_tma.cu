// SPDX-License-Identifier: Apache-2.0
#include "expert_gemm.cuh"

template <typename T>
static __device__ __forceinline__ void
expert_gemm_dx_tma(T *dx, const T *dy, const int *row, const T *, const int *first, int, int, int E,
                   int M, int C, int Q, int, const nj_tiles &dy_tiles, const nj_tiles &w_tiles)
{
    expert_sums<TILE_N, 1>(
        dy, row, first, E, C, Q * M, dy_tiles,
        [&](const ring &r, const expert_tile &t, int k) {
            const int m = k * TILE_K, from = t.expert * M + (m < M ? m : m + (E - 1) * M);
#pragma unroll
            for (int i = 0; i < TILE_N / PANEL; i++)
                tile_copy(r.b() + i * TILE_K * 128, w_tiles, from, t.column + i * PANEL, r.full());
        },
        [&](const expert_tile &t, int place, int rows, const float(&d)[TILE_N / 8][4]) {
            const auto value = [&](int n, int e) { return pack2(d[n][e], d[n][e + 1]); };
#pragma unroll
            for (int q = 0; q < TILE_N / 32; q++)
                store32(dx + (int64_t)place * C + t.column, C, q, rows, C - t.column, value);
        });
}
