// SPDX-License-Identifier: Apache-2.0
#include "../glu.cuh"
#include "gemm.cuh"

constexpr int WIDTH = TILE_N / 2; // columns of act in a tile: one half of b is gate, the other up

// Store columns [32 q, 32 q + 32) of a tile of a 16-bit array, for rows g and g + 8 of each warp.
template <typename Value>
static __device__ __forceinline__ void store32(lp *row0, int64_t ld, int q, int rows, int columns,
                                               const Value &value)
{
    const int g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint32_t w[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            w[j] = value(4 * q + j, 2 * h);
        quad_transpose(w);
        if (g + 8 * h < rows && 32 * q + 8 * t < columns)
            global_store16(row0 + (g + 8 * h) * ld + 32 * q + 8 * t, w);
    }
}

// Return the activation for two columns. Gate and up are rounded first, as if they were stored in between.
template <int ACT> static __device__ __forceinline__ uint32_t gated2(uint32_t gate, uint32_t up)
{
    float g[2], u[2];
    widen(g, gate, lp());
    widen(u, up, lp());
    const auto weight = activation<ACT>::weight;
    return pack2(g[0] * weight(g[0]) * u[0], g[1] * weight(g[1]) * u[1]);
}

// Fetch the tiles that the block multiplies; one thread calls this.
static __device__ __forceinline__ void fetch(ring &r, const tile_order &tiles, int steps, int I,
                                             const nj_tiles &x, const nj_tiles &w)
{
    const int block = cluster_block();
    int pair, column;
    for (int i = blockIdx.x / 2; tiles.at(i, pair, column); i += gridDim.x / 2) {
        for (int k = 0; k < steps; k++, r.next()) {
            barrier_wait(r.empty(), r.phase);
            barrier_expect(r.full(), STAGE_BYTES);
            tile_copy(r.a(), x, (pair * 2 + block) * TILE_M, k * TILE_K, r.full());
            tile_copy_both(r.b() + block * WIDTH * 128, w, column * WIDTH + block * I, k * TILE_K,
                           r.full());
        }
    }
}

// Store 16 rows of a tile per warp; `rows` and `columns` of the tile lie in the arrays.
template <int ACT>
static __device__ __forceinline__ void store(lp *act, lp *gu, const float (&d)[TILE_N / 8][4],
                                             int I, int rows, int columns)
{
    const auto gate = [&](int n, int e) { return pack2(d[n][e], d[n][e + 1]); };
    const auto up = [&](int n, int e) { return gate(n + WIDTH / 8, e); };
    const auto both = [&](int n, int e) { return gated2<ACT>(gate(n, e), up(n, e)); };
#pragma unroll
    for (int q = 0; q < WIDTH / 32; q++) {
        store32(act, I, q, rows, columns, both);
        if (gu) {
            store32(gu, 2 * I, q, rows, columns, gate);
            store32(gu + I, 2 * I, q, rows, columns, up);
        }
    }
}

template <int ACT>
static __device__ __forceinline__ void multiply(ring &r, const tile_order &tiles, int steps,
                                                lp *act, lp *gu, int N, int I)
{
    const int rows16 = cluster_block() * TILE_M + (threadIdx.x - WARPGROUP) / 32 * 16;
    int pair, column;
    for (int i = blockIdx.x / 2; tiles.at(i, pair, column); i += gridDim.x / 2) {
        float d[TILE_N / 8][4];
        product(d, r, steps);
        const int row = pair * 2 * TILE_M + rows16, first = column * WIDTH;
        const int64_t at = (int64_t)row * I + first;
        store<ACT>(act + at, gu ? gu + at + (int64_t)row * I : NULL, d, I, N - row, I - first);
    }
}

template <typename T, int ACT>
static __device__ __forceinline__ void gemm_glu(T *act, T *gu, const T *, const T *, int N, int I,
                                                int C, int, const nj_tiles &x_tiles,
                                                const nj_tiles &w_tiles)
{
    extern __shared__ unsigned char shared[];
    ring r(shared, warpgroup_id() == 0);
    const tile_order tiles(N, I, WIDTH);
    const int steps = (C + TILE_K - 1) / TILE_K;
    if (threadIdx.x == 0)
        r.init();
    cluster_sync();
    if (warpgroup_id() == 0) {
        registers_fewer();
        if (threadIdx.x == 0)
            fetch(r, tiles, steps, I, x_tiles, w_tiles);
    } else {
        registers_more();
        multiply<ACT>(r, tiles, steps, act, gu, N, I);
    }
    cluster_sync(); // no block exits while the other may still write to its shared memory
}
