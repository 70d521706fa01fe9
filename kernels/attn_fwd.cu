// SPDX-License-Identifier: Apache-2.0
#include "mma.cuh"

// Online softmax of a warp's 16 rows: running maximum and this lane's share of the sum, for rows g and g+8.
struct softmax16 {
    float top[2], sum[2];

    // Turn scores into exp(scale * (s - top)), and return the factors that earlier sums and outputs are multiplied by.
    template <int N>
    __device__ __forceinline__ void step(float (&s)[N][4], float scale_log2, float (&factor)[2])
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float next = s[0][2 * r];
#pragma unroll
            for (int n = 0; n < N; n++)
                next = fmaxf(next, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
            next = fmaxf(top[r], quad_max(next));
            const float base = next == -INFINITY ? 0 : next * scale_log2; // no key is visible yet
            factor[r] = ex2(top[r] * scale_log2 - base);
            top[r] = next;
            sum[r] *= factor[r];
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

// Compute 128 query rows of one head per block, 16 per warp; key and value tiles go through two buffers, one arriving
// while the other is used. Blocks start with the last rows, which have the most keys.
template <typename T, int D>
static __device__ __forceinline__ void attn_fwd(T *o, float *lse, const T *qkv,
                                                const int32_t *doc_start, int B, int S, int H,
                                                int K, int window, float scale)
{
    constexpr int BM = NJ_THREADS / 2, BN = (D > 128 ? 64 : 128) / sizeof(T), TILE = BN * D;
    extern __shared__ __align__(512) uint4 nj_shared[]; // layout: [2 buffers][key, value][BN][D]
    T *tiles = reinterpret_cast<T *>(nj_shared);
    const int head = blockIdx.x, b = blockIdx.y, first = (gridDim.z - 1 - blockIdx.z) * BM;
    const int row = first + threadIdx.x / 32 * 16, g = lane_id() / 4, t = lane_id() % 4;
    const heads<D> at(H, K, head);
    qkv += (int64_t)b * S * at.row;
    const key_starts start_of = {doc_start, b, S, window};
    const auto load = [&](int tile) {
        T *buffer = tiles + tile % 2 * 2 * TILE;
        tile_load<T, D, BN>(buffer, qkv + at.k, at.row, tile * BN, S);
        tile_load<T, D, BN>(buffer + TILE, qkv + at.v, at.row, tile * BN, S);
    };

    const int tile_first = start_of(first) / BN, tile_end = (min(first + BM, S) + BN - 1) / BN;
    load(tile_first);
    rows16<T, D> q;
    q.load(qkv + at.q, at.row, row, S);
    const int start_min = start_of(row), start_max = start_of(row + 15);
    acc16<T, D> acc;
    acc.zero();
    softmax16 soft = {{-INFINITY, -INFINITY}, {0, 0}};
    const float scale_log2 = scale * LOG2_E;
    for (int tile = tile_first; tile < tile_end; tile++) {
        cp_wait();
        __syncthreads(); // this tile has arrived, and no thread reads the other buffer any more
        if (tile + 1 < tile_end)
            load(tile + 1);
        const int j0 = tile * BN;
        if (j0 > row + 15 || j0 + BN <= start_min)
            continue;
        const T *keys = tiles + tile % 2 * 2 * TILE;
        float s[BN / 8][4], factor[2];
        scores<T, D, BN>(s, q, keys);
        if (j0 + BN - 1 > row || j0 < start_max) {
            const int start[2] = {start_of(row + g), start_of(row + g + 8)};
#pragma unroll
            for (int n = 0; n < BN / 8; n++) {
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int j = j0 + 8 * n + 2 * t + e % 2, i = row + g + e / 2 * 8;
                    if (j > i || j < start[e / 2])
                        s[n][e] = -INFINITY;
                }
            }
        }
        soft.step(s, scale_log2, factor);
        acc.multiply(factor[0], factor[1]);
        accumulate<T, D, BN>(acc, s, keys + TILE);
    }
    const float sum[2] = {quad_sum(soft.sum[0]), quad_sum(soft.sum[1])};
    acc.multiply(1 / sum[0], 1 / sum[1]);
    acc.store(o + (int64_t)b * S * H * D + head * D, H * D, row, S);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = row + g + 8 * r;
        if (t == 0 && i < S)
            lse[((int64_t)b * H + head) * S + i] = soft.top[r] * scale + logf(sum[r]);
    }
}
