// SPDX-License-Identifier: Apache-2.0
//
// expert_gemm.cuh: GEMMs in which each expert has a stretch of the rows and a matrix of its own, by the ring of
// gemm.cuh. Blocks work alone: where few rows belong to an expert, a second block would have nothing to do. If less
// than half of a tile has rows, one warpgroup multiplies alone, in half the time.
//
// TMA fetches the weights. It fetches rows too where they lie in order; rows that an index names are copied by the
// whole first warpgroup, with cp.async.
#ifndef NOJIT_SM90A_EXPERT_GEMM_CUH
#define NOJIT_SM90A_EXPERT_GEMM_CUH

#include "../experts.cuh"
#include "gemm.cuh"

constexpr int HALF_N = TILE_N / 2; // rows of the weights that one copy fetches
constexpr int BEHIND = 2;          // stages that a warpgroup fills before it waits for the first
constexpr int FILLERS =
    1 + WARPGROUP / 32; // who says that a stage is full: TMA, and each warp that copies rows
constexpr int B_BYTES = STAGE_BYTES - A_BYTES;

// Fetch the weights of a stage, whose two halves begin at these rows.
static __device__ __forceinline__ void fetch_weights(const ring &r, const nj_tiles &w, int row,
                                                     int other, int column)
{
    tile_copy(r.b(), w, row, column, r.full());
    tile_copy(r.b() + B_BYTES / 2, w, other, column, r.full());
}

// Fetch the tiles that the block multiplies; one thread calls this. weights(t, k) fetches those of step k.
template <typename Tiles, typename Weights>
static __device__ __forceinline__ void fetch_in_order(ring &r, Tiles tiles, int steps,
                                                      const nj_tiles &x, const Weights &weights)
{
    expert_tile t;
    for (int i = blockIdx.x; tiles.at(i, t); i += gridDim.x) {
        for (int k = 0; k < steps; k++, r.next()) {
            barrier_wait(r.empty(), r.phase);
            barrier_expect(r.full(), STAGE_BYTES);
            tile_copy(r.a(), x, t.place, k * TILE_K, r.full());
            weights(r, t, k);
        }
    }
}

// Say that this warp's rows of a stage have arrived, if no more than PENDING later stages are on their way. Products
// read shared memory in another way than copies write it, hence the fence.
template <int PENDING> static __device__ __forceinline__ void rows_arrived(uint32_t full)
{
    panels_wait_for<PENDING>();
    __syncwarp();
    if (lane_id() == 0)
        barrier_arrive(full, 0); // to this block, a cluster of its own
}

// Do the same for rows that an index names; the first warpgroup calls this.
template <typename Tiles, typename Weights>
static __device__ __forceinline__ void fetch_by_index(ring &r, Tiles tiles, int steps, const lp *x,
                                                      const int *index, int C,
                                                      const Weights &weights)
{
    constexpr int EACH = TILE_M * 8 / WARPGROUP, STEP = WARPGROUP / 8;
    const int chunk = threadIdx.x % 8, mine = threadIdx.x / 8;
    const uint32_t to = tile_at<lp, PANEL>(mine, chunk) * sizeof(lp);
    int filled = 0;
    expert_tile t;
    for (int i = blockIdx.x; tiles.at(i, t); i += gridDim.x) {
        uint32_t from[EACH]; // in chunks of x
#pragma unroll
        for (int n = 0; n < EACH; n++)
            from[n] = (uint32_t)index[t.place + min(mine + STEP * n, t.rows - 1)] * (C / 8) + chunk;
        for (int k = 0; k < steps; k++, r.next(), filled++) {
            barrier_wait(r.empty(), r.phase);
            if (threadIdx.x == 0) {
                barrier_expect(r.full(), B_BYTES);
                weights(r, t, k);
            }
            const bool valid = k * TILE_K + chunk * 8 < C;
            const uint4 *const now = reinterpret_cast<const uint4 *>(x) + (valid ? k * 8 : 0);
#pragma unroll
            for (int n = 0; n < EACH; n++)
                cp16_at(r.a() + to + n * STEP * 128, now + from[n], valid);
            panels_commit();
            if (filled >= BEHIND)
                rows_arrived<BEHIND>(r.full_of((r.stage + STAGES - BEHIND) % STAGES));
        }
    }
    for (int n = min(filled, BEHIND); n > 0; n--)
        rows_arrived<0>(r.full_of((r.stage + STAGES - n) % STAGES));
}

// Return the stages of a tile unread.
static __device__ __forceinline__ void skip(ring &r, int steps)
{
    for (int k = 0; k < steps; k++, r.next()) {
        barrier_wait(r.full(), r.phase);
        stage_release<1>(r.empty());
    }
}

// Call store(t, place, rows, d) for each tile: the sums of 16 places per warp, of which `rows` are the expert's.
template <int B_ROWS, typename Tiles, typename Store>
static __device__ __forceinline__ void multiply(ring &r, Tiles tiles, int steps, const Store &store)
{
    const int rows16 = (threadIdx.x - WARPGROUP) / 32 * 16, rows64 = (warpgroup_id() - 1) * 64;
    expert_tile t;
    for (int i = blockIdx.x; tiles.at(i, t); i += gridDim.x) {
        if (t.rows <= rows64) {
            skip(r, steps);
            continue;
        }
        float d[TILE_N / 8][4];
        product<1, B_ROWS>(d, r, steps);
        store(t, t.place + rows16, t.rows - rows16, d);
    }
}

// Compute all tiles of the block, COLUMNS columns of the result wide. index: NULL, or the row of x at each place.
// B_ROWS is 1 if the weights of a stage are TILE_K rows of a matrix, 0 if they are TILE_N rows.
template <int COLUMNS, int B_ROWS, typename Weights, typename Store>
static __device__ __forceinline__ void
expert_sums(const lp *x, const int *index, const int *first, int E, int columns, int C,
            const nj_tiles &x_tiles, const Weights &weights, const Store &store)
{
    extern __shared__ unsigned char shared[];
    ring r(shared, warpgroup_id() == 0);
    const expert_tiles<TILE_M, COLUMNS> tiles(first, E, columns);
    const int steps = (C + TILE_K - 1) / TILE_K;
    if (threadIdx.x == 0)
        r.init<1>(index ? FILLERS : 1);
    __syncthreads();
    if (warpgroup_id() == 0) {
        registers_fewer();
        if (index)
            fetch_by_index(r, tiles, steps, x, index, C, weights);
        else if (threadIdx.x == 0)
            fetch_in_order(r, tiles, steps, x_tiles, weights);
    } else {
        registers_more();
        multiply<B_ROWS>(r, tiles, steps, store);
    }
}

// Do the same for products with the transposed matrices. halves(t, row, other) gives the first rows of the two halves
// of the weights of a tile.
template <int COLUMNS, typename Halves, typename Store>
static __device__ __forceinline__ void
expert_products(const lp *x, const int *index, const int *first, int E, int columns, int C,
                const nj_tiles &x_tiles, const nj_tiles &w_tiles, const Halves &halves,
                const Store &store)
{
    const auto weights = [&](const ring &r, const expert_tile &t, int k) {
        int row, other;
        halves(t, row, other);
        fetch_weights(r, w_tiles, row, other, k * TILE_K);
    };
    expert_sums<COLUMNS, 0>(x, index, first, E, columns, C, x_tiles, weights, store);
}

#endif
