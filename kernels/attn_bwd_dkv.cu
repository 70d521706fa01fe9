// SPDX-License-Identifier: Apache-2.0
#include "pairs.cuh"

#include <type_traits>

// Add the sums of the upper half of the block's warps to those of the lower half, through shared memory.
template <typename T, int D>
static __device__ __forceinline__ void add_halves(acc16<T, D> &acc, float *shared)
{
    constexpr int HALF = NJ_THREADS / 2;
    float *mine = shared + threadIdx.x % HALF;
    __syncthreads();
    if (threadIdx.x >= HALF) {
#pragma unroll
        for (int n = 0; n < D / 2; n++)
            mine[n * HALF] = acc.c[n / 4][n % 4];
    }
    __syncthreads();
    if (threadIdx.x < HALF) {
#pragma unroll
        for (int n = 0; n < D / 2; n++)
            acc.c[n / 4][n % 4] += mine[n * HALF];
    }
}

// Values that the queries of a tile have one of each.
template <int N> struct query_columns {
    float lse[N], delta[N];
    int32_t start[N];
};

// Return the end of the queries from key0 on, below the limit, that see some of the keys: document starts never
// decrease along a sequence. All threads must call it.
static __device__ __forceinline__ int query_end(const int32_t *starts, int key0, int keys,
                                                int limit)
{
    if (!starts)
        return limit;
    int end = key0;
    for (int i = key0 + threadIdx.x; end < limit; i += NJ_THREADS) {
        const int n = __syncthreads_count(i < limit && starts[i] < key0 + keys);
        end += n;
        if (n < NJ_THREADS)
            break;
    }
    return end;
}

// Turn products q.k into probabilities, for keys from `key` and queries from i0 + n0, where n0 counts within the tile.
template <int N, int Q>
static __device__ __forceinline__ void
score_probabilities(float (&p)[N][4], const query_columns<Q> &columns, int i0, int n0, int key,
                    int window, float scale_log2)
{
    const int g = lane_id() / 4, t = lane_id() % 4;
    const bool mask = i0 + n0 < key + 15 || columns.start[n0 + 8 * N - 1] > key;
    if (first_seen(0, i0 + n0 + 8 * N - 1, window) > key) {
#pragma unroll
        for (int n = 0; n < N; n++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                if (i0 + n0 + 8 * n + 2 * t + e % 2 - (key + g + e / 2 * 8) >= window)
                    p[n][e] = -INFINITY;
            }
        }
    }
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int c = n0 + 8 * n + 2 * t + e % 2, j = key + g + e / 2 * 8;
            const bool out = mask && (i0 + c < j || columns.start[c] > j);
            const float x = ex2(p[n][e] * scale_log2 - columns.lse[c] * LOG2_E);
            p[n][e] = out ? 0 : x;
        }
    }
}

// Take delta off products dout.v, for queries from n0 of the tile on.
template <int N, int Q>
static __device__ __forceinline__ void subtract_delta(float (&ds)[N][4],
                                                      const query_columns<Q> &columns, int n0)
{
#pragma unroll
    for (int n = 0; n < N; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            ds[n][e] -= columns.delta[n0 + 8 * n + 2 * (lane_id() % 4) + e % 2];
    }
}

// The tiles of queries of all heads of a group that see some of a block's keys, and how they come to shared memory, in
// two buffers.
template <typename T, int D, int BQ> struct query_tiles {
    static constexpr int TILE = BQ * D;
    T *tiles; // [2 buffers][query, dout][BQ][D]
    query_columns<BQ> *columns;
    // rows of the sequence
    const T *qkv, *dout;
    const float *lse, *delta;
    const int32_t *starts; // NULL: one document
    int S, H, row, head0;
    int end, first,
        a_head; // end of the queries that see keys; first tile and number of tiles of a head

    __device__ __forceinline__ int first_query(int step) const
    {
        return (first + step % a_head) * BQ;
    }
    __device__ __forceinline__ void load(int step) const
    {
        const int head = head0 + step / a_head, i0 = first_query(step);
        T *buffer = tiles + step % 2 * 2 * TILE;
        tile_load<T, D, BQ>(buffer, qkv + head * D, row, i0, S);
        tile_load<T, D, BQ>(buffer + TILE, dout + head * D, H * D, i0, S);
        load_columns(step);
    }
    __device__ __forceinline__ void load_columns(int step) const
    {
        const int head = head0 + step / a_head, i0 = first_query(step);
        if (threadIdx.x < BQ) {
            const int n = threadIdx.x, i = min(i0 + n, S - 1);
            const int64_t at_row = (int64_t)head * S + i;
            cp4(&columns[step % 2].lse[n], lse + at_row, i0 + n < S);
            cp4(&columns[step % 2].delta[n], delta + at_row, i0 + n < S);
            if (starts)
                cp4(&columns[step % 2].start[n], starts + i, true);
            else
                columns[step % 2].start[n] = 0;
        }
    }
    // Set all but the places in shared memory.
    __device__ __forceinline__ void find(const T *all_dout, const T *all_qkv, const float *all_lse,
                                         const float *all_delta, const int32_t *doc_start,
                                         int heads, int K, int length, int window)
    {
        constexpr int BK = NJ_THREADS / 4;
        const int b = blockIdx.y, key0 = blockIdx.z * BK;
        S = length;
        H = heads;
        row = (H + 2 * K) * D;
        head0 = blockIdx.x * (H / K);
        qkv = all_qkv + (int64_t)b * S * row;
        dout = all_dout + (int64_t)b * S * H * D;
        lse = all_lse + (int64_t)b * H * S;
        delta = all_delta + (int64_t)b * H * S;
        starts = doc_start ? doc_start + (int64_t)b * S : NULL;
        end = query_end(starts, key0, BK, window_end(key0 + BK, window, S));
        first = key0 / BQ;
        a_head = (end + BQ - 1) / BQ - first;
    }
};

// Compute the gradients of 64 keys where a warp does not have registers for the sums of both: two warps share 16 keys.
// The first computes probabilities and the gradient of values, the second that of keys.
template <typename T, int D>
static __device__ __forceinline__ void
dkv_in_pairs(T *dqkv, const T *dout, const T *qkv, const float *lse, const float *delta,
             const int32_t *doc_start, int S, int H, int K, int window, float scale)
{
    constexpr int BK = NJ_THREADS / 4, BQ = 32 / sizeof(T), TILE = BQ * D;
    // layout: [2 buffers][query, dout][BQ][D]; probabilities; columns of the 2 buffers
    extern __shared__ __align__(512) uint4 nj_shared[];
    T *tiles = reinterpret_cast<T *>(nj_shared);
    const pair_exchange<BQ / 2> exchange = {reinterpret_cast<float *>(tiles + 4 * TILE)};
    const int second = place_in_pair();
    const int key0 = blockIdx.z * BK, key = key0 + pair_of_block() * 16, group = H / K;
    const heads<D> at(H, K, blockIdx.x * group);
    query_tiles<T, D, BQ> from;
    from.tiles = tiles;
    from.columns = reinterpret_cast<query_columns<BQ> *>(exchange.values + BK * BQ);
    from.find(dout, qkv, lse, delta, doc_start, H, K, S, window);

    from.load(0);
    rows16<T, D> own;
    own.load(from.qkv + (second ? at.v : at.k), at.row, key, S);
    acc16<T, D> acc;
    acc.zero();
    for (int step = 0; step < group * from.a_head; step++) {
        cp_wait();
        __syncthreads(); // this tile has arrived, and no thread reads the other buffer or probabilities any more
        if (step + 1 < group * from.a_head)
            from.load(step + 1);
        const T *queries = tiles + step % 2 * 2 * TILE;
        const auto &columns = from.columns[step % 2];
        const int i0 = from.first_query(step);
        const bool seen = i0 + BQ > key;
        float s[BQ / 8][4];
        if (seen) {
            scores<T, D, BQ>(s, own, queries + second * TILE);
            if (second) {
                subtract_delta(s, columns, 0);
            } else {
                score_probabilities(s, columns, i0, 0, key, window, scale * LOG2_E);
                exchange.put(s);
            }
        }
        __syncthreads();
        if (seen) {
            if (second)
                exchange.multiply(s);
            accumulate<T, D, BQ>(acc, s, queries + (1 - second) * TILE);
        }
    }
    if (second)
        acc.multiply(scale, scale);
    acc.store(dqkv + (from.qkv - qkv) + (second ? at.k : at.v), at.row, key, S);
}

// Compute the gradients of 64 keys. Four warps own 16 keys each; four more own the same keys and take the other half of
// each query tile, so that the few blocks keep the device busy.
template <typename T, int D>
static __device__ __forceinline__ void
dkv_in_halves(T *dqkv, const T *dout, const T *qkv, const float *lse, const float *delta,
              const int32_t *doc_start, int S, int H, int K, int window, float scale)
{
    constexpr int BK = NJ_THREADS / 4, BQ = 8192 / D / sizeof(T), TILE = BQ * D, HALF = BQ / 2;
    constexpr int STEP = sizeof(T) == 4 ? 8 : D == 64 ? 32 : 16;
    constexpr bool V_SHARED = sizeof(T) == 2 && D == 128; // registers are scarce
    // layout: [2 buffers][query, dout][BQ][D]; values [BK][D] if V_SHARED; columns of the 2 buffers
    extern __shared__ __align__(512) uint4 nj_shared[];
    T *tiles = reinterpret_cast<T *>(nj_shared), *values = tiles + 4 * TILE;
    auto columns = reinterpret_cast<query_columns<BQ> *>(values + (V_SHARED ? BK * D : 0));
    const int key0 = blockIdx.z * BK, group = H / K;
    const int warp = threadIdx.x / 32, key = key0 + warp % 4 * 16, half = warp / 4 * HALF;
    const heads<D> at(H, K, blockIdx.x * group);
    query_tiles<T, D, BQ> from;
    from.tiles = tiles;
    from.columns = columns;
    from.find(dout, qkv, lse, delta, doc_start, H, K, S, window);
    const int steps = group * from.a_head;

    from.load(0);
    rows16<T, D> k;
    k.load(from.qkv + at.k, at.row, key, S);
    std::conditional_t<V_SHARED, rows16_shared<T, D>, rows16<T, D>> v;
    if constexpr (V_SHARED) {
        tile_load<T, D, BK>(values, from.qkv + at.v, at.row, key0, S);
        v.tile = values + (key - key0) * D;
    } else {
        v.load(from.qkv + at.v, at.row, key, S);
    }
    acc16<T, D> dk, dv;
    dk.zero();
    dv.zero();
    const float scale_log2 = scale * LOG2_E;
    for (int step = 0; step < steps; step++) {
        cp_wait();
        __syncthreads(); // this tile has arrived, and no thread reads the other buffer any more
        if (step + 1 < steps)
            from.load(step + 1);
        const int i0 = from.first_query(step), buffer = step % 2;
#pragma unroll 1
        for (int n0 = half; n0 < half + HALF; n0 += STEP) {
            if (i0 + n0 + STEP <= key || i0 + n0 >= from.end)
                continue;
            const T *queries = tiles + buffer * 2 * TILE + n0 * D;
            float p[STEP / 8][4], ds[STEP / 8][4];
            scores<T, D, STEP>(p, k, queries);
            scores<T, D, STEP>(ds, v, queries + TILE);
            score_probabilities(p, columns[buffer], i0, n0, key, window, scale_log2);
            subtract_delta(ds, columns[buffer], n0);
#pragma unroll
            for (int n = 0; n < STEP / 8; n++) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    ds[n][e] *= p[n][e];
            }
            accumulate<T, D, STEP>(dv, p, queries + TILE);
            accumulate<T, D, STEP>(dk, ds, queries);
        }
    }
    add_halves<T, D>(dv, reinterpret_cast<float *>(nj_shared));
    add_halves<T, D>(dk, reinterpret_cast<float *>(nj_shared));
    if (threadIdx.x >= NJ_THREADS / 2)
        return;
    dk.multiply(scale, scale);
    dqkv += from.qkv - qkv;
    dk.store(dqkv + at.k, at.row, key, S);
    dv.store(dqkv + at.v, at.row, key, S);
}

// Compute the gradients of 64 keys of one key head per block, over the query tiles of all query heads of its group.
// Scores are transposed: rows are keys, columns queries.
template <typename T, int D>
static __device__ __forceinline__ void
attn_bwd_dkv(T *dqkv, const T *dout, const T *qkv, const float *lse, const float *delta,
             const int32_t *doc_start, int B, int S, int H, int K, int window, float scale)
{
    if constexpr (D > 128)
        dkv_in_pairs<T, D>(dqkv, dout, qkv, lse, delta, doc_start, S, H, K, window, scale);
    else
        dkv_in_halves<T, D>(dqkv, dout, qkv, lse, delta, doc_start, S, H, K, window, scale);
}
