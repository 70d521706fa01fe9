// SPDX-License-Identifier: Apache-2.0
#include "pairs.cuh"

// Compute delta for a lane's two rows of one head, and store it. The four lanes of a row, which each read every fourth
// 16 bytes, get the same delta. Rows beyond S repeat the last one.
template <typename T, int D>
static __device__ __forceinline__ void row_deltas(float (&row_delta)[2], float *delta,
                                                  const T *dout, const T *o, int ld, int row, int S)
{
    constexpr int N = vec<T>::N;
    const int g = lane_id() / 4, t = lane_id() % 4;
    // without this ptxas makes the copies of tiles, which come before, wait for these loads
    __syncwarp();
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int64_t at = (int64_t)min(row + g + 8 * r, S - 1) * ld + t * N;
        row_delta[r] = 0;
#pragma unroll 4
        for (int d = 0; d < D; d += 4 * N) {
            vec<T> x, y;
            x.load(dout + at + d);
            y.load(o + at + d);
#pragma unroll
            for (int i = 0; i < N; i++)
                row_delta[r] += x.v[i] * y.v[i];
        }
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        row_delta[r] = quad_sum(row_delta[r]);
        if (t == 0 && row + g + 8 * r < S)
            delta[row + g + 8 * r] = row_delta[r];
    }
}

// A lane's two rows, as a warp of a pair needs them: `less` is the logarithm to base 2 of the softmax denominator in
// the first warp, delta in the second.
struct pair_rows {
    int row, start[2];
    float less[2];

    // Turn products of the rows with keys or values from j0 on into factors of the gradients of their scores.
    template <int N>
    __device__ __forceinline__ void factors(float (&s)[N][4], bool second, int j0,
                                            float scale_log2) const
    {
        const int g = lane_id() / 4, t = lane_id() % 4;
#pragma unroll
        for (int n = 0; n < N; n++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int j = j0 + 8 * n + 2 * t + e % 2, i = row + g + e / 2 * 8;
                if (second)
                    s[n][e] -= less[e / 2];
                else if (j > i || j < start[e / 2])
                    s[n][e] = 0;
                else
                    s[n][e] = ex2(s[n][e] * scale_log2 - less[e / 2]);
            }
        }
    }
};

// One head of a sequence.
template <typename T> struct dq_head {
    const T *q, *k, *v, *dout, *o;
    T *dq;
    const float *lse;
    float *delta;
    int row, ldo, S; // row: elements from row to row of q, k, v and dq; ldo: of dout and o
    key_starts start_of;
    float scale;
};

// Compute 64 rows, from `first` on, where registers do not hold the rows of queries, those of dout and the sums. Two
// warps share 16 rows: the first has their queries and computes probabilities, the second has their rows of dout and
// computes what probabilities are multiplied by. Each then has both factors, and sums half of the columns.
template <typename T, int D>
static __device__ __forceinline__ void dq_in_pairs(const dq_head<T> &a, int first)
{
    constexpr int BM = NJ_THREADS / 4, BN = 32 / sizeof(T), TILE = BN * D, W = D / 2;
    // layout: [2 buffers][key, value][BN][D]; factors
    extern __shared__ __align__(512) uint4 nj_shared[];
    T *tiles = reinterpret_cast<T *>(nj_shared);
    const pair_exchange<BN / 2> exchange = {reinterpret_cast<float *>(tiles + 4 * TILE)};
    const int second = place_in_pair();
    const auto load = [&](int tile) {
        T *buffer = tiles + tile % 2 * 2 * TILE;
        tile_load<T, D, BN>(buffer, a.k, a.row, tile * BN, a.S);
        tile_load<T, D, BN>(buffer + TILE, a.v, a.row, tile * BN, a.S);
    };
    const int tile_end = (min(first + BM, a.S) + BN - 1) / BN;
    int tile = a.start_of(first) / BN;
    load(tile);
    pair_rows rows = {.row = first + pair_of_block() * 16};
    rows16<T, D> own;
    if (second) {
        own.load(a.dout, a.ldo, rows.row, a.S);
        row_deltas<T, D>(rows.less, a.delta, a.dout, a.o, a.ldo, rows.row, a.S);
    } else {
        own.load(a.q, a.row, rows.row, a.S);
    }
    const int start_min = a.start_of(rows.row);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = rows.row + lane_id() / 4 + 8 * r;
        rows.start[r] = a.start_of(i);
        if (!second)
            rows.less[r] = a.lse[min(i, a.S - 1)] * LOG2_E;
    }
    acc16<T, W> acc;
    acc.zero();
    for (; tile < tile_end; tile++) {
        cp_wait();
        __syncthreads(); // this tile has arrived, and no thread reads the other buffer or factors any more
        if (tile + 1 < tile_end)
            load(tile + 1);
        const T *keys = tiles + tile % 2 * 2 * TILE;
        const bool seen = tile * BN <= rows.row + 15 && (tile + 1) * BN > start_min;
        float s[BN / 8][4];
        if (seen) {
            scores<T, D, BN>(s, own, keys + second * TILE);
            rows.factors(s, second, tile * BN, a.scale * LOG2_E);
            exchange.put(s);
        }
        __syncthreads();
        if (seen) {
            exchange.multiply(s);
            accumulate<T, D, BN>(acc, s, keys + second * W);
        }
    }
    acc.multiply(a.scale, a.scale);
    acc.store(a.dq + second * W, a.row, rows.row, a.S);
}

// Compute the gradient of queries in pairs, 64 of a block's rows after the other 64.
template <typename T, int D>
static __device__ __forceinline__ void
dq_by_halves(T *dqkv, float *delta, const T *dout, const T *qkv, const T *o, const float *lse,
             const int32_t *doc_start, int B, int S, int H, int K, int window, float scale)
{
    const int head = blockIdx.x, b = blockIdx.y, first = (gridDim.z - 1 - blockIdx.z) * 128;
    const heads<D> at(H, K, head);
    const int64_t in = (int64_t)b * S * at.row, out = ((int64_t)b * S * H + head) * D;
    const int64_t row = ((int64_t)b * H + head) * S;
    const dq_head<T> a = {
        .q = qkv + in + at.q,
        .k = qkv + in + at.k,
        .v = qkv + in + at.v,
        .dout = dout + out,
        .o = o + out,
        .dq = dqkv + in + at.q,
        .lse = lse + row,
        .delta = delta + row,
        .row = at.row,
        .ldo = H * D,
        .S = S,
        .start_of = {.doc_start = doc_start, .b = b, .S = S, .window = window},
        .scale = scale,
    };
#pragma unroll 1
    for (int i = first; i < min(first + 128, S); i += 64) {
        dq_in_pairs<T, D>(a, i);
        __syncthreads(); // no thread reads tiles of these rows any more
    }
}

// Compute the gradient of queries, laid out like attn_fwd: 16 query rows per warp, key and value tiles through two
// buffers. The probabilities of a few keys at a time are in registers. delta, which attn_bwd_dkv reads, is computed
// while the first tiles arrive.
template <typename T, int D>
static __device__ __forceinline__ void
dq_by_warps(T *dqkv, float *delta, const T *dout, const T *qkv, const T *o, const float *lse,
            const int32_t *doc_start, int B, int S, int H, int K, int window, float scale)
{
    constexpr int BM = NJ_THREADS / 2, BN = 128 / sizeof(T), TILE = BN * D, STEP = 32 / sizeof(T);
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
    rows16<T, D> q, dy;
    q.load(qkv + at.q, at.row, row, S);
    dout += ((int64_t)b * S * H + head) * D;
    o += ((int64_t)b * S * H + head) * D;
    dy.load(dout, H * D, row, S);
    const int start_min = start_of(row), start_max = start_of(row + 15);
    const float scale_log2 = scale * LOG2_E;
    lse += ((int64_t)b * H + head) * S;
    delta += ((int64_t)b * H + head) * S;
    int start[2];
    float row_lse[2], row_delta[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        start[r] = start_of(row + g + 8 * r);
        row_lse[r] = lse[min(row + g + 8 * r, S - 1)] * LOG2_E;
    }
    row_deltas<T, D>(row_delta, delta, dout, o, H * D, row, S);
    acc16<T, D> acc;
    acc.zero();
    for (int tile = tile_first; tile < tile_end; tile++) {
        cp_wait();
        __syncthreads(); // this tile has arrived, and no thread reads the other buffer any more
        if (tile + 1 < tile_end)
            load(tile + 1);
        const T *keys = tiles + tile % 2 * 2 * TILE;
#pragma unroll 1
        for (int j0 = tile * BN; j0 < (tile + 1) * BN && j0 <= row + 15;
             j0 += STEP, keys += STEP * D) {
            if (j0 + STEP <= start_min)
                continue;
            float s[STEP / 8][4], dp[STEP / 8][4];
            scores<T, D, STEP>(s, q, keys);
            scores<T, D, STEP>(dp, dy, keys + TILE);
            const bool mask = j0 + STEP - 1 > row || j0 < start_max;
#pragma unroll
            for (int n = 0; n < STEP / 8; n++) {
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int j = j0 + 8 * n + 2 * t + e % 2, i = row + g + e / 2 * 8;
                    const float p = ex2(s[n][e] * scale_log2 - row_lse[e / 2]);
                    const bool out = mask && (j > i || j < start[e / 2]);
                    s[n][e] = out ? 0 : p * (dp[n][e] - row_delta[e / 2]);
                }
            }
            accumulate<T, D, STEP>(acc, s, keys);
        }
    }
    acc.multiply(scale, scale);
    acc.store(dqkv + (int64_t)b * S * at.row + at.q, at.row, row, S);
}

// Compute the gradient of 128 query rows of one head per block. Blocks start with the last rows, which have the most
// keys.
template <typename T, int D>
static __device__ __forceinline__ void
attn_bwd_dq(T *dqkv, float *delta, const T *dout, const T *qkv, const T *o, const float *lse,
            const int32_t *doc_start, int B, int S, int H, int K, int window, float scale)
{
    if constexpr (D > 128)
        dq_by_halves<T, D>(dqkv, delta, dout, qkv, o, lse, doc_start, B, S, H, K, window, scale);
    else
        dq_by_warps<T, D>(dqkv, delta, dout, qkv, o, lse, doc_start, B, S, H, K, window, scale);
}
