// SPDX-License-Identifier: Apache-2.0
#include "expert_wide.cuh"

// A block computes tiles of 64 rows and 128 columns of the matrices, in their order.
template <typename T>
static __device__ __forceinline__ void
expert_gemm_dw(float *dw, const T *dy, const int *dy_row, const T *x, const int *x_row,
               const int *first, int P, int Y, int X, int E, int M, int C, int Q, int G, int add)
{
    constexpr int DEPTH = WIDE_ROWS<T>, STAGE = (TILE_ROWS + TILE_COLUMNS) * DEPTH;
    extern __shared__ uint4 shared[];
    T *const stages = reinterpret_cast<T *>(shared);
    const int rows = Q * M, down = (rows + TILE_ROWS - 1) / TILE_ROWS;
    const int across = (C + TILE_COLUMNS - 1) / TILE_COLUMNS;
    for (int i = blockIdx.x; i < E * down * across; i += gridDim.x) {
        const int e = i / (down * across), m = i / across % down * TILE_ROWS;
        const int column = i % across * TILE_COLUMNS, end = first[e + 1];
        const auto load = [&](T *stage, int from) {
            const auto row_of = [&](const T *of, const int *index, int p, int ld) {
                return p < end ? of + (int64_t)(index ? index[p] : p) * ld : nullptr;
            };
            wide_load<T, TILE_ROWS>(stage, dy, rows - m, [&](int r) {
                const T *const row = row_of(dy, dy_row, from + r, rows);
                return row ? row + m : nullptr;
            });
            wide_load<T, TILE_COLUMNS>(stage + TILE_ROWS * DEPTH, x, C - column, [&](int r) {
                const T *const row = row_of(x, x_row, from + r, C);
                return row ? row + column : nullptr;
            });
        };
        tile_sums<T> sums;
        __syncthreads(); // the stages may still be read for the tile before
        T *now = stages, *next = stages + STAGE;
        int p = first[e];
        if (p < end)
            load(now, p);
        for (; p < end; p += DEPTH) {
            cp_wait();
            __syncthreads();
            if (p + DEPTH < end)
                load(next, p + DEPTH);
            add_columns(sums, now, now + TILE_ROWS * DEPTH);
            T *const done = now;
            now = next;
            next = done;
        }
        sums.each([&](int r, int c, float sum, float beside) {
            const int k = m + r;
            if (k >= rows || c >= C - column)
                return;
            const int64_t at = k < M ? (int64_t)e * M + k : ((int64_t)E + e - 1) * M + k;
            float2 *const to = reinterpret_cast<float2 *>(dw + at * C + column + c);
            float2 out = make_float2(sum, beside);
            if (add) {
                out.x += to->x;
                out.y += to->y;
            }
            *to = out;
        });
    }
}
