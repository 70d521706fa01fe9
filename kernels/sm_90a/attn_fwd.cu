// SPDX-License-Identifier: Apache-2.0
#include "../attn_fwd.cu"
#include "wgmma.cuh"

// In 16 bits 128 registers are enough here for heads of 128 too: two blocks on an SM.
#undef NJ_MIN_BLOCKS
#define NJ_MIN_BLOCKS (1 + (sizeof(NJ_T) == 2 && NJ_D <= 128))

// Softmax as in the common source, except that the maximum that scores are relative to is kept while they exceed it
// only slightly: earlier sums and outputs then need no scaling.
struct lazy_softmax {
    float top[2], sum[2];

    // Return whether earlier sums and outputs must be multiplied by the factors; uniform in a warp.
    template <int N>
    __device__ __forceinline__ bool raise(const float (&s)[N][4], float scale_log2,
                                          float (&factor)[2])
    {
        constexpr float SLACK = 8; // as a power of two
        float next[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            next[r] = fmaxf(s[0][2 * r], s[0][2 * r + 1]);
#pragma unroll
            for (int n = 1; n < N; n++)
                next[r] = fmaxf(next[r], fmaxf(s[n][2 * r], s[n][2 * r + 1]));
            next[r] = quad_max(next[r]);
        }
        if (!__any_sync(0xffffffffu, (next[0] - top[0]) * scale_log2 > SLACK ||
                                         (next[1] - top[1]) * scale_log2 > SLACK))
            return false;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            next[r] = fmaxf(top[r], next[r]);
            factor[r] = next[r] == -INFINITY ? 1 : ex2((top[r] - next[r]) * scale_log2);
            sum[r] *= factor[r];
            top[r] = next[r];
        }
        return true;
    }
    // Turn scores into exp(scale * (s - top)).
    template <int N>
    __device__ __forceinline__ void exponentials(float (&s)[N][4], float scale_log2)
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            // no key is visible yet
            const float base = top[r] == -INFINITY ? 0 : top[r] * scale_log2;
#pragma unroll
            for (int n = 0; n < N; n++) {
#pragma unroll
                for (int e = 2 * r; e < 2 * r + 2; e++) {
                    s[n][e] = ex2(s[n][e] * scale_log2 - base);
                    sum[r] += s[n][e];
                }
            }
        }
    }
};

// Divide the sums of a warp's rows, and store them and the logarithms of the denominators.
template <int D>
static __device__ __forceinline__ void store_output(acc16<lp, D> &acc, const lazy_softmax &soft,
                                                    lp *o, float *lse, int ldo, int row, int S,
                                                    float scale)
{
    const float sum[2] = {quad_sum(soft.sum[0]), quad_sum(soft.sum[1])};
    acc.multiply(1 / sum[0], 1 / sum[1]);
    acc.store(o, ldo, row, S);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = row + lane_id() / 4 + 8 * r;
        if (lane_id() % 4 == 0 && i < S)
            lse[i] = soft.top[r] * scale + logf(sum[r]);
    }
}

// Compute 128 query rows of one head per block, as the common source does, 64 per warpgroup. While one block of an SM
// multiplies, the other computes exponentials.
template <int D>
static __device__ __forceinline__ void attn_fwd_wgmma(lp *o, float *lse, const lp *qkv,
                                                      const int32_t *doc_start, int B, int S, int H,
                                                      int K, int window, float scale)
{
    constexpr int BM = NJ_THREADS / 2, BN = 64, TILE = BN * D;
    extern __shared__ __align__(1024) lp tiles[]; // layout: [2 buffers][keys, values][BN][D]
    __shared__ __align__(1024) lp queries[BM * D];
    const int head = blockIdx.x, b = blockIdx.y, first = (gridDim.z - 1 - blockIdx.z) * BM;
    const int row64 = first + warpgroup_id() * 64, g = lane_id() / 4;
    const int row = row64 + threadIdx.x % WARPGROUP / 32 * 16;
    const heads<D> at(H, K, head);
    qkv += (int64_t)b * S * at.row;
    const key_starts start_of = {doc_start, b, S, window};
    const int tile_first = start_of(first) / BN, tile_end = (min(first + BM, S) + BN - 1) / BN;
    const int mine_first = start_of(row64) / BN; // first key tile of this warpgroup
    const auto key_tile = [&](int tile) { return tiles + (tile & 1) * 2 * TILE; };
    const lp *next = qkv + at.k + (int64_t)tile_first * BN * at.row;
    const auto load = [&](int tile) {
        panels_load<D, BN>(key_tile(tile), next, at.row, S - tile * BN);
        panels_load<D, BN>(key_tile(tile) + TILE, next + (at.v - at.k), at.row, S - tile * BN);
        next += (int64_t)BN * at.row;
    };

    panels_load<D, BM>(queries, qkv + at.q + (int64_t)first * at.row, at.row, S - first);
    load(tile_first);
    const uint32_t q = panels<BM>(queries + (row64 - first) * PANEL);
    const int start_max = start_of(row + 15);
    const float scale_log2 = scale * LOG2_E;
    acc16<lp, D> acc;
    acc.zero();
    lazy_softmax soft = {{-INFINITY, -INFINITY}, {0, 0}};
    for (int tile = tile_first; tile < tile_end; tile++) {
        panels_wait();
        __syncthreads(); // this tile has arrived, and no thread reads the one before any more
        if (tile + 1 < tile_end)
            load(tile + 1);
        if (tile < mine_first || tile * BN >= row64 + 64)
            continue;
        const uint32_t keys = panels<BN>(key_tile(tile));
        const uint32_t values = panels<BN>(key_tile(tile) + TILE);
        float s[BN / 8][4];
        uint32_t p[BN / 16][4];
        wgmma_fence();
        start_product<D, BM, BN>(s, q, keys);
        wgmma_wait<0>();
        keep(s);
        const int j0 = tile * BN;
        if (j0 + BN - 1 > row || j0 < start_max) {
            const int from[2] = {start_of(row + g) - j0, start_of(row + g + 8) - j0};
            const int to[2] = {row + g - j0, row + g + 8 - j0};
            mask(s, from, to);
        }
        float factor[2];
        if (soft.raise(s, scale_log2, factor))
            acc.multiply(factor[0], factor[1]);
        soft.exponentials(s, scale_log2);
        pack(p, s);
        wgmma_fence();
        start_sum(acc.c, p, values);
        wgmma_wait<0>();
        keep(acc.c);
    }
    store_output<D>(acc, soft, o + (int64_t)b * S * H * D + head * D,
                    lse + ((int64_t)b * H + head) * S, H * D, row, S, scale);
}

// Shared memory with heads of 256: each key tile is free sooner than the values of the same keys.
struct wide_memory {
    static constexpr int D = 256, BN = 64;
    lp queries[128 * D], keys[2][BN * D], values[3][BN * D];
};
static_assert(sizeof(wide_memory) == 229376, "this is arch_smem in the contract");

// Turn scores of keys from j0 on into probabilities. Return whether earlier sums must be multiplied by the factors.
template <int N>
static __device__ __forceinline__ bool
wide_probabilities(float (&s)[N][4], float (&rise)[2], lazy_softmax &soft,
                   const key_starts &start_of, int row, int j0, int start_max, float scale_log2)
{
    const int g = lane_id() / 4;
    if (j0 + 8 * N - 1 > row || j0 < start_max) {
        const int from[2] = {start_of(row + g) - j0, start_of(row + g + 8) - j0};
        const int to[2] = {row + g - j0, row + g + 8 - j0};
        mask(s, from, to);
    }
    const bool raised = soft.raise(s, scale_log2, rise);
    soft.exponentials(s, scale_log2);
    return raised;
}

// Compute 128 query rows with heads of 256, one block on an SM: while tensor cores multiply the probabilities of one
// tile, and the keys of the next, the warpgroup computes the exponentials of the next. Tiles are counted from the first
// that some row of the block sees.
static __device__ __forceinline__ void attn_fwd_wide(lp *o, float *lse, const lp *qkv,
                                                     const int32_t *doc_start, int B, int S, int H,
                                                     int K, int window, float scale)
{
    constexpr int D = wide_memory::D, BM = NJ_THREADS / 2, BN = wide_memory::BN;
    extern __shared__ __align__(1024) lp nj_dynamic[];
    auto &memory = *reinterpret_cast<wide_memory *>(nj_dynamic);
    const int head = blockIdx.x, b = blockIdx.y, first = (gridDim.z - 1 - blockIdx.z) * BM;
    const int row64 = first + warpgroup_id() * 64;
    const int row = row64 + threadIdx.x % WARPGROUP / 32 * 16;
    const heads<D> at(H, K, head);
    qkv += (int64_t)b * S * at.row;
    const key_starts start_of = {doc_start, b, S, window};
    const key_tiles<D, BN> tiles(qkv, at, start_of(first), first + BM, S);
    // first and last tile of this warpgroup
    const int mine = start_of(row64) / BN - tiles.first;
    const int last = min(tiles.count - 1, row64 / BN - tiles.first);
    // All warps call this once for each tile, when its scores are there: they wait for the next keys and the tile's
    // values, and load what comes after them.
    const auto advance = [&](int n) {
        panels_wait();
        __syncthreads();
        tiles.load(memory.values[(n + 1) % 3], tiles.values, n + 1);
        tiles.load(memory.keys[n % 2], tiles.keys, n + 2);
    };

    panels_load<D, BM>(memory.queries, qkv + at.q + (int64_t)first * at.row, at.row, S - first);
    tiles.load(memory.keys[0], tiles.keys, 0);
    panels_commit();
    tiles.load(memory.values[0], tiles.values, 0);
    tiles.load(memory.keys[1], tiles.keys, 1);
    panels_commit();
    const uint32_t q = panels<BM>(memory.queries + (row64 - first) * PANEL);
    const int start_max = start_of(row + 15);
    const float scale_log2 = scale * LOG2_E;
    acc16<lp, D> acc;
    acc.zero();
    lazy_softmax soft = {{-INFINITY, -INFINITY}, {0, 0}};
    float s[BN / 8][4], rise[2]; // rise: factors of earlier sums
    uint32_t p[BN / 16][4];
    const auto probabilities = [&](int n) {
        const int j0 = (tiles.first + n) * BN;
        return wide_probabilities(s, rise, soft, start_of, row, j0, start_max, scale_log2);
    };
    panels_wait_for<1>();
    __syncthreads(); // queries and the first keys have arrived
    int n = 0;
    for (; n < mine; n++)
        advance(n);
    wgmma_fence();
    start_product<D, BM, BN>(s, q, panels<BN>(memory.keys[n % 2]));
    wgmma_wait<0>();
    keep(s);
    probabilities(n);
    advance(n);
    pack(p, s);
    for (; n < last; n++) {
        wgmma_fence();
        start_product<D, BM, BN>(s, q, panels<BN>(memory.keys[(n + 1) % 2]));
        start_sum(acc.c, p, panels<BN>(memory.values[n % 3]));
        wgmma_wait<1>();
        keep(s);
        const bool raised = probabilities(n + 1);
        keep(s);
        advance(n + 1);
        wgmma_wait<0>();
        keep(acc.c);
        if (raised)
            acc.multiply(rise[0], rise[1]);
        pack(p, s);
    }
    wgmma_fence();
    start_sum(acc.c, p, panels<BN>(memory.values[n % 3]));
    while (++n < tiles.count)
        advance(n);
    wgmma_wait<0>();
    keep(acc.c);
    store_output<D>(acc, soft, o + (int64_t)b * S * H * D + head * D,
                    lse + ((int64_t)b * H + head) * S, H * D, row, S, scale);
}

template <>
__device__ __forceinline__ void attn_fwd<lp, 64>(lp *o, float *lse, const lp *qkv,
                                                 const int32_t *doc_start, int B, int S, int H,
                                                 int K, int window, float scale)
{
    attn_fwd_wgmma<64>(o, lse, qkv, doc_start, B, S, H, K, window, scale);
}

template <>
__device__ __forceinline__ void attn_fwd<lp, 128>(lp *o, float *lse, const lp *qkv,
                                                  const int32_t *doc_start, int B, int S, int H,
                                                  int K, int window, float scale)
{
    attn_fwd_wgmma<128>(o, lse, qkv, doc_start, B, S, H, K, window, scale);
}

template <>
__device__ __forceinline__ void attn_fwd<lp, 256>(lp *o, float *lse, const lp *qkv,
                                                  const int32_t *doc_start, int B, int S, int H,
                                                  int K, int window, float scale)
{
    attn_fwd_wide(o, lse, qkv, doc_start, B, S, H, K, window, scale);
}
