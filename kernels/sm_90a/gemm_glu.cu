// SPDX-License-Identifier: Apache-2.0
#include "glu_tile.cuh"

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
