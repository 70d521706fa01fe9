// SPDX-License-Identifier: Apache-2.0
#include "expert_wide.cuh"

template <typename T>
static __device__ __forceinline__ void expert_gemm_dx(T *dx, const T *dy, const int *row,
                                                      const T *w, const int *first, int P, int R,
                                                      int E, int M, int C, int Q, int G)
{
    constexpr int DEPTH = WIDE_ROWS<T>, STAGE = (TILE_ROWS + TILE_COLUMNS) * DEPTH;
    extern __shared__ uint4 shared[];
    T *const stages = reinterpret_cast<T *>(shared);
    const int summed = Q * M;
    expert_tiles<TILE_ROWS, TILE_COLUMNS> tiles(first, E, C);
    expert_tile t;
    for (int i = blockIdx.x; tiles.at(i, t); i += gridDim.x) {
        const T *const matrix = w + (int64_t)t.expert * M * C + t.column;
        tile_source<T, TILE_ROWS> a;
        const int mine = threadIdx.x / CHUNKS;
#pragma unroll
        for (int k = 0; k < TILE_ROWS / 32; k++) {
            a.valid[k] = mine + 32 * k < t.rows;
            const int64_t p = t.place + (a.valid[k] ? mine + 32 * k : 0);
            a.from[k] = dy + (row ? row[p] : p) * summed;
        }
        const auto load = [&](T *stage, int k) {
            a.load(stage, k, summed);
            wide_load<T, TILE_COLUMNS>(stage + TILE_ROWS * DEPTH, w, C - t.column, [&](int r) {
                const int m = k + r;
                const int64_t at = m < M ? m : m + (E - 1) * M;
                return m < summed ? matrix + at * C : nullptr;
            });
        };
        tile_sums<T> sums;
        __syncthreads(); // the stages may still be read for the tile before
        load(stages, 0);
        T *now = stages, *next = stages + STAGE;
        for (int k = 0; k < summed; k += DEPTH) {
            cp_wait();
            __syncthreads();
            if (k + DEPTH < summed)
                load(next, k + DEPTH);
            add_rows(sums, now, now + TILE_ROWS * DEPTH);
            T *const done = now;
            now = next;
            next = done;
        }
        sums.each([&](int r, int c, float sum, float beside) {
            if (r < t.rows && c < C - t.column)
                store2(dx + (int64_t)(t.place + r) * C + t.column + c, sum, beside);
        });
    }
}
