// SPDX-License-Identifier: Apache-2.0
#include "../attn_bwd_dq.cu"
#include "wgmma.cuh"

// In 16 bits 128 registers are enough here for heads of 128 too: two blocks on an SM.
#undef NJ_MIN_BLOCKS
#define NJ_MIN_BLOCKS (1 + (sizeof(NJ_T) == 2 && NJ_D <= 128))

// Return b, which is computed again, since keeping it would cost one register too many.
static __device__ __forceinline__ int block_y()
{
    int y;
    asm volatile("mov.u32 %0, %%ctaid.y;" : "=r"(y));
    return y;
}

// Turn scores into probabilities; lse is a logarithm to base 2.
template <int N>
static __device__ __forceinline__ void probabilities(float (&s)[N][4], float scale_log2,
                                                     const float (&lse)[2])
{
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            s[n][e] = ex2(s[n][e] * scale_log2 - lse[e / 2]);
    }
}

// Compute 128 query rows of one head per block, as the common source does, 64 per warpgroup.
template <int D>
static __device__ __forceinline__ void
attn_bwd_dq_wgmma(lp *dqkv, float *delta, const lp *dout, const lp *qkv, const lp *o,
                  const float *lse, const int32_t *doc_start, int B, int S, int H, int K,
                  int window, float scale)
{
    constexpr int BM = NJ_THREADS / 2, BN = 4096 / D, TILE = BN * D;
    // layout: [2 buffers][keys, values][BN][D]; with heads of 128: query rows
    extern __shared__ __align__(1024) lp tiles[];
    // heads of 64: rows of queries; rows of dout
    __shared__ __align__(1024) lp rows[D == 64 ? 2 : 1][BM * D];
    lp *queries = D == 64 ? rows[0] : tiles + 4 * TILE, *douts = rows[D == 64];
    const int head = blockIdx.x, b = blockIdx.y, first = (gridDim.z - 1 - blockIdx.z) * BM;
    const int row64 = first + warpgroup_id() * 64, g = lane_id() / 4;
    const int row = row64 + threadIdx.x % WARPGROUP / 32 * 16;
    const heads<D> at(H, K, head);
    qkv += (int64_t)b * S * at.row;
    const key_starts start_of = {doc_start, b, S, window};
    const auto key_tile = [&](int tile) { return tiles + (tile & 1) * 2 * TILE; };
    const int tile_first = start_of(first) / BN, tile_end = (min(first + BM, S) + BN - 1) / BN;
    const int mine_first = start_of(row64) / BN; // first key tile of this warpgroup
    const auto load = [&](int tile) {
        const lp *keys = qkv + at.k + (int64_t)(tile * BN) * at.row;
        panels_load<D, BN>(key_tile(tile), keys, at.row, S - tile * BN);
        panels_load<D, BN>(key_tile(tile) + TILE, keys + (at.v - at.k), at.row, S - tile * BN);
    };

    panels_load<D, BM>(queries, qkv + at.q + (int64_t)first * at.row, at.row, S - first);
    dout += ((int64_t)b * S * H + head) * D;
    o += ((int64_t)b * S * H + head) * D;
    panels_load<D, BM>(douts, dout + (int64_t)first * H * D, H * D, S - first);
    load(tile_first);
    const uint32_t q = panels<BM>(queries + (row64 - first) * PANEL);
    const uint32_t dy = panels<BM>(douts + (row64 - first) * PANEL);
    const int start_max = start_of(row + 15);
    const float scale_log2 = scale * LOG2_E;
    lse += ((int64_t)b * H + head) * S;
    delta += ((int64_t)b * H + head) * S;
    float row_lse[2], row_delta[2];
#pragma unroll
    for (int r = 0; r < 2; r++)
        row_lse[r] = lse[min(row + g + 8 * r, S - 1)] * LOG2_E;
    row_deltas<lp, D>(row_delta, delta, dout, o, H * D, row, S);
    acc16<lp, D> acc;
    acc.zero();
    for (int tile = tile_first; tile < tile_end; tile++) {
        panels_wait();
        __syncthreads(); // this tile has arrived, and no thread reads the other buffers any more
        if (tile + 1 < tile_end)
            load(tile + 1);
        if (tile < mine_first || tile * BN >= row64 + 64)
            continue;
        const uint32_t keys = panels<BN>(key_tile(tile));
        const uint32_t values = panels<BN>(key_tile(tile) + TILE);
        float s[BN / 8][4], dp[BN / 8][4];
        uint32_t a[BN / 16][4];
        wgmma_fence();
        start_product<D, BM, BN>(s, q, keys);
        start_product<D, BM, BN>(dp, dy, values);
        wgmma_wait<1>();
        keep(s);
        const int j0 = tile * BN;
        if (j0 + BN - 1 > row || j0 < start_max) {
            const int from[2] = {start_of(row + g) - j0, start_of(row + g + 8) - j0};
            const int to[2] = {row + g - j0, row + g + 8 - j0};
            mask(s, from, to);
        }
        probabilities(s, scale_log2, row_lse);
        keep(s);
        wgmma_wait<0>();
        keep(dp);
#pragma unroll
        for (int n = 0; n < BN / 8; n++) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                s[n][e] *= dp[n][e] - row_delta[e / 2];
        }
        pack(a, s);
        wgmma_fence();
        start_sum(acc.c, a, keys);
        wgmma_wait<0>();
        keep(acc.c);
    }
    acc.multiply(scale, scale);
    acc.store(dqkv + (int64_t)block_y() * S * at.row + at.q, at.row, row, S);
}

// Shared memory with heads of 256.
struct wide_memory {
    static constexpr int D = 256, BN = 64;
    lp queries[128 * D], douts[128 * D], keys[2][BN * D], values[BN * D];
};
static_assert(sizeof(wide_memory) == 229376, "this is arch_smem in the contract");

// A lane's two rows with heads of 256; lse is a logarithm to base 2.
struct wide_rows {
    int row64, row; // first row of the warpgroup and of the warp
    float lse[2], delta[2];
};

// Add up the gradient of the rows. There is room for the values of one tile: those of the next are loaded while tensor
// cores multiply keys. Rows, the keys of the first tile and its values are on their way.
static __device__ __forceinline__ void
sum_tiles(acc16<lp, wide_memory::D> &acc, wide_memory &memory,
          const key_tiles<wide_memory::D, wide_memory::BN> &tiles, const wide_rows &rows,
          const key_starts &start_of, float scale_log2)
{
    constexpr int D = wide_memory::D, BM = NJ_THREADS / 2, BN = wide_memory::BN;
    const int g = lane_id() / 4, row = rows.row, start_max = start_of(row + 15);
    const uint32_t q = panels<BM>(memory.queries + warpgroup_id() * 64 * PANEL);
    const uint32_t dy = panels<BM>(memory.douts + warpgroup_id() * 64 * PANEL);
    // first and last tile of this warpgroup
    const int mine = start_of(rows.row64) / BN - tiles.first;
    const int last = min(tiles.count - 1, rows.row64 / BN - tiles.first);
    // All warps call these in turn for each tile: the first waits for its values, once products of the tile before are
    // complete, the second for the next keys, once products with these values are.
    const auto wait_for_values = [&](int n) {
        panels_wait();
        __syncthreads();
        tiles.load(memory.keys[(n + 1) % 2], tiles.keys, n + 1);
    };
    const auto wait_for_keys = [&](int n) {
        panels_wait();
        __syncthreads();
        tiles.load(memory.values, tiles.values, n + 1);
    };
    panels_wait_for<1>();
    __syncthreads(); // rows and the first keys have arrived
    int n = 0;
    for (; n < mine; n++) {
        wait_for_values(n);
        wait_for_keys(n);
    }
    for (; n <= last; n++) {
        const uint32_t keys = panels<BN>(memory.keys[n % 2]);
        float s[BN / 8][4], dp[BN / 8][4];
        uint32_t a[BN / 16][4];
        wgmma_fence();
        start_product<D, BM, BN>(s, q, keys);
        wait_for_values(n);
        wgmma_fence();
        start_product<D, BM, BN>(dp, dy, panels<BN>(memory.values));
        wgmma_wait<1>();
        keep(s);
        const int j0 = (tiles.first + n) * BN;
        if (j0 + BN - 1 > row || j0 < start_max) {
            const int begin[2] = {start_of(row + g) - j0, start_of(row + g + 8) - j0};
            const int end[2] = {row + g - j0, row + g + 8 - j0};
            mask(s, begin, end);
        }
        probabilities(s, scale_log2, rows.lse);
        keep(s);
        wgmma_wait<0>();
        keep(dp);
#pragma unroll
        for (int i = 0; i < BN / 8; i++) {
#pragma unroll
            for (int e = 0; e < 4; e++)
                s[i][e] *= dp[i][e] - rows.delta[e / 2];
        }
        pack(a, s);
        wgmma_fence();
        start_sum(acc.c, a, keys);
        wait_for_keys(n);
        wgmma_wait<0>();
        keep(acc.c);
    }
    for (; n < tiles.count; n++) {
        wait_for_values(n);
        wait_for_keys(n);
    }
}

// Compute 128 query rows with heads of 256, 64 per warpgroup, one block on an SM.
static __device__ __forceinline__ void attn_bwd_dq_wide(lp *dqkv, float *delta, const lp *dout,
                                                        const lp *qkv, const lp *o,
                                                        const float *lse, const int32_t *doc_start,
                                                        int B, int S, int H, int K, int window,
                                                        float scale)
{
    constexpr int D = wide_memory::D, BM = NJ_THREADS / 2, BN = wide_memory::BN;
    extern __shared__ __align__(1024) lp nj_dynamic[];
    auto &memory = *reinterpret_cast<wide_memory *>(nj_dynamic);
    const int head = blockIdx.x, b = blockIdx.y, first = (gridDim.z - 1 - blockIdx.z) * BM;
    const heads<D> at(H, K, head);
    qkv += (int64_t)b * S * at.row;
    dout += ((int64_t)b * S * H + head) * D;
    o += ((int64_t)b * S * H + head) * D;
    lse += ((int64_t)b * H + head) * S;
    delta += ((int64_t)b * H + head) * S;
    const key_starts start_of = {.doc_start = doc_start, .b = b, .S = S, .window = window};
    const key_tiles<D, BN> tiles(qkv, at, start_of(first), first + BM, S);
    panels_load<D, BM>(memory.queries, qkv + at.q + (int64_t)first * at.row, at.row, S - first);
    panels_load<D, BM>(memory.douts, dout + (int64_t)first * H * D, H * D, S - first);
    tiles.load(memory.keys[0], tiles.keys, 0);
    panels_commit();
    tiles.load(memory.values, tiles.values, 0);
    panels_commit();
    wide_rows rows;
    rows.row64 = first + warpgroup_id() * 64;
    rows.row = rows.row64 + threadIdx.x % WARPGROUP / 32 * 16;
#pragma unroll
    for (int r = 0; r < 2; r++)
        rows.lse[r] = lse[min(rows.row + lane_id() / 4 + 8 * r, S - 1)] * LOG2_E;
    row_deltas<lp, D>(rows.delta, delta, dout, o, H * D, rows.row, S);
    acc16<lp, D> acc;
    acc.zero();
    sum_tiles(acc, memory, tiles, rows, start_of, scale * LOG2_E);
    acc.multiply(scale, scale);
    acc.store(dqkv + (int64_t)b * S * at.row + at.q, at.row, rows.row, S);
}

template <>
__device__ __forceinline__ void attn_bwd_dq<lp, 64>(lp *dqkv, float *delta, const lp *dout,
                                                    const lp *qkv, const lp *o, const float *lse,
                                                    const int32_t *doc_start, int B, int S, int H,
                                                    int K, int window, float scale)
{
    attn_bwd_dq_wgmma<64>(dqkv, delta, dout, qkv, o, lse, doc_start, B, S, H, K, window, scale);
}

template <>
__device__ __forceinline__ void attn_bwd_dq<lp, 128>(lp *dqkv, float *delta, const lp *dout,
                                                     const lp *qkv, const lp *o, const float *lse,
                                                     const int32_t *doc_start, int B, int S, int H,
                                                     int K, int window, float scale)
{
    attn_bwd_dq_wgmma<128>(dqkv, delta, dout, qkv, o, lse, doc_start, B, S, H, K, window, scale);
}

template <>
__device__ __forceinline__ void attn_bwd_dq<lp, 256>(lp *dqkv, float *delta, const lp *dout,
                                                     const lp *qkv, const lp *o, const float *lse,
                                                     const int32_t *doc_start, int B, int S, int H,
                                                     int K, int window, float scale)
{
    attn_bwd_dq_wide(dqkv, delta, dout, qkv, o, lse, doc_start, B, S, H, K, window, scale);
}
