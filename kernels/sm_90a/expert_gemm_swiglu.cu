// SPDX-License-Identifier: Apache-2.0
#include "expert_gemm.cuh"
#include "glu_tile.cuh"

template <typename T>
static __device__ __forceinline__ void
expert_gemm_swiglu(T *act, T *gu, const T *x, const int *row, const T *, const int *first, int, int,
                   int E, int I, int C, int, const nj_tiles &x_tiles, const nj_tiles &w_tiles)
{
    expert_products<WIDTH>(
        x, row, first, E, I, C, x_tiles, w_tiles,
        [&](const expert_tile &t, int &gate, int &up) {
            gate = t.expert * I + t.column;
            up = E * I + gate;
        },
        [&](const expert_tile &t, int place, int rows, const float(&d)[TILE_N / 8][4]) {
            const int64_t at = (int64_t)place * I + t.column;
            store<NJ_SILU>(act + at, gu ? gu + at + (int64_t)place * I : nullptr, d, I, rows,
                           I - t.column);
        });
}
