// SPDX-License-Identifier: Apache-2.0
#include "../attn_bwd_dkv.cu"
#include "wgmma.cuh"

// Shared memory of a warpgroup. Of its chunks of BQ queries, one is summed while the next is multiplied, and two more
// are arriving.
constexpr int BUFFERS = 4;
template <int D> struct query_chunks {
    static constexpr int BQ = 4096 / D;
    lp keys[64 * D]; // keys in the first warpgroup; values in the second
    lp query[BUFFERS][BQ * D], dout[BUFFERS][BQ * D];
};

template <int D> struct block_memory {
    query_chunks<D> chunks[2]; // chunks of the two warpgroups
    query_columns<query_chunks<D>::BQ> columns[2][BUFFERS];
};
static_assert(sizeof(block_memory<64>) == 153600 && sizeof(block_memory<128>) == 166912,
              "these are arch_smem in the contract");

// Source of a warpgroup's next chunk. All queries of all heads of the group make one list of chunks, of which a
// warpgroup takes every second one.
template <int D> struct query_source {
    static constexpr int BQ = query_chunks<D>::BQ, ROWS = WARPGROUP / (D / 8);
    const lp *query, *dout; // this thread's 16 bytes of the first of its rows
    const float *column;    // lse or delta of one query
    const int32_t *starts;
    // first query of the chunk; end and number of a head's queries that see keys
    int i0, end, length;
    int S, left; // left: number of chunks still to load
    int query_row, dout_row;

    __device__ __forceinline__ void load(query_chunks<D> &to, query_columns<BQ> (&columns)[BUFFERS],
                                         int buffer)
    {
        const int thread = threadIdx.x % WARPGROUP, row = thread / (D / 8), n = thread % BQ;
        if (left > 0) {
            left--;
            for (; i0 >= end; i0 -= length) {
                query += D - (int64_t)length * query_row;
                dout += D - (int64_t)length * dout_row;
                column += S - length;
            }
            const int at = thread % (D / 8) / 8 * BQ * PANEL + tile_at<lp, PANEL>(row, thread % 8);
#pragma unroll
            for (int i = 0; i < BQ; i += ROWS)
                cp16(to.query[buffer] + at + i * PANEL, query + (int64_t)i * query_row,
                     i0 + row + i < S);
#pragma unroll
            for (int i = 0; i < BQ; i += ROWS)
                cp16(to.dout[buffer] + at + i * PANEL, dout + (int64_t)i * dout_row,
                     i0 + row + i < S);
            if (thread < 2 * BQ)
                cp4((thread < BQ ? columns[buffer].lse : columns[buffer].delta) + n,
                    column - max(i0 + n - (S - 1), 0), i0 + n < S);
            if (starts && thread >= WARPGROUP - BQ)
                cp4(&columns[buffer].start[n], starts + min(i0 + n, S - 1), true);
            i0 += 2 * BQ;
            query += (int64_t)2 * BQ * query_row;
            dout += (int64_t)2 * BQ * dout_row;
            column += 2 * BQ;
        }
        panels_commit(); // an empty group at the end keeps the count of groups right
    }
};

// Values that a lane's columns of a chunk have one of each.
template <int BQ> struct lane_columns {
    float lse[BQ / 4], delta[BQ / 4];
    int last_start;

    __device__ __forceinline__ void load(const query_columns<BQ> &columns, bool starts)
    {
        const int t = lane_id() % 4;
#pragma unroll
        for (int n = 0; n < BQ / 8; n++) {
#pragma unroll
            for (int e = 0; e < 2; e++) {
                lse[2 * n + e] = columns.lse[8 * n + 2 * t + e];
                delta[2 * n + e] = columns.delta[8 * n + 2 * t + e];
            }
        }
        last_start = starts ? columns.start[BQ - 1] : 0;
    }
};

// Turn products of keys from `key` on with queries from i0 on into probabilities.
template <int BQ>
static __device__ __forceinline__ void
probabilities(float (&p)[BQ / 8][4], const lane_columns<BQ> &lane, const query_columns<BQ> &columns,
              int i0, int key, int window, float scale_log2)
{
    const int g = lane_id() / 4, t = lane_id() % 4;
    if (i0 < key + 15) {
        const int from[2] = {key + g - i0, key + g + 8 - i0}, to[2] = {BQ, BQ};
        mask(p, from, to);
    }
    if (first_seen(0, i0 + BQ - 1, window) > key) {
        const int last = key + window - 1 + g - i0, from[2] = {0, 0}, to[2] = {last, last + 8};
        mask(p, from, to);
    }
    if (lane.last_start > key) {
#pragma unroll
        for (int n = 0; n < BQ / 8; n++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                if (columns.start[8 * n + 2 * t + e % 2] > key + g + e / 2 * 8)
                    p[n][e] = -INFINITY;
            }
        }
    }
#pragma unroll
    for (int n = 0; n < BQ / 8; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            p[n][e] = ex2(p[n][e] * scale_log2 - lane.lse[2 * n + e % 2] * LOG2_E);
    }
}

// Turn products of dout and values into gradients of the scores.
template <int BQ>
static __device__ __forceinline__ void
gradients(float (&ds)[BQ / 8][4], const float (&p)[BQ / 8][4], const lane_columns<BQ> &lane)
{
#pragma unroll
    for (int n = 0; n < BQ / 8; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            ds[n][e] = p[n][e] * (ds[n][e] - lane.delta[2 * n + e % 2]);
    }
}

// Store sums for the other warpgroup, which calls add().
template <int D> static __device__ __forceinline__ void leave(lp *shared, const acc16<lp, D> &acc)
{
    float *mine = reinterpret_cast<float *>(shared) + threadIdx.x % WARPGROUP;
#pragma unroll
    for (int n = 0; n < D / 2; n++)
        mine[n * WARPGROUP] = acc.c[n / 4][n % 4];
}
// Add the sums that the other warpgroup has stored.
template <int D> static __device__ __forceinline__ void add(acc16<lp, D> &acc, const lp *shared)
{
    const float *mine = reinterpret_cast<const float *>(shared) + threadIdx.x % WARPGROUP;
#pragma unroll
    for (int n = 0; n < D / 2; n++)
        acc.c[n / 4][n % 4] += mine[n * WARPGROUP];
}

// Store a warp's rows row + 0..15 below the limit, through shared memory, so that lanes write 16 bytes each.
template <int D>
static __device__ __forceinline__ void store_rows(const acc16<lp, D> &acc, lp *shared, lp *dst,
                                                  int ld, int row, int limit)
{
    const int g = lane_id() / 4, t = lane_id() % 4;
    lp *rows = shared + threadIdx.x % WARPGROUP / 32 * 16 * D;
#pragma unroll
    for (int n = 0; n < D / 8; n++) {
#pragma unroll
        for (int r = 0; r < 2; r++)
            *reinterpret_cast<uint32_t *>(rows + tile_at<lp, D>(g + 8 * r, n) + 2 * t) =
                pack2(acc.c[n][2 * r], acc.c[n][2 * r + 1]);
    }
    __syncwarp();
#pragma unroll
    for (int i = lane_id(); i < 2 * D; i += 32) {
        const int r = i / (D / 8), chunk = i % (D / 8);
        if (row + r < limit)
            *reinterpret_cast<uint4 *>(dst + (int64_t)(row + r) * ld + 8 * chunk) =
                *reinterpret_cast<const uint4 *>(rows + tile_at<lp, D>(r, chunk));
    }
}

// Add the contributions of `count` chunks of queries, the first of them from i0 on, to the gradients of keys and
// values. The first chunk, keys and values have arrived, and two more chunks are on their way. While this warpgroup
// computes the probabilities of one chunk, tensor cores multiply the one before.
template <int D>
static __device__ __forceinline__ void
sum_chunks(acc16<lp, D> &dk, acc16<lp, D> &dv, uint32_t k, uint32_t v, query_chunks<D> &mine,
           query_columns<query_chunks<D>::BQ> (&columns)[BUFFERS], query_source<D> &source,
           int warpgroup, int count, int i0, int key, int window, float scale_log2)
{
    constexpr int BK = 64, BQ = query_chunks<D>::BQ;
    constexpr uint32_t STEP = sizeof mine.query[0] >> 4; // step from buffer to buffer
    const uint32_t query = panels<BQ>(mine.query[0]), dout = panels<BQ>(mine.dout[0]);
    float p[BQ / 8][4], ds[BQ / 8][4];
    uint32_t a[BQ / 16][4], c[BQ / 16][4];
    lane_columns<BQ> lane;
    int buffer = 0;
    const auto prepare = [&] {
        for (; i0 >= source.end; i0 -= source.length)
            continue;
        lane.load(columns[buffer], source.starts != NULL);
    };
    const auto to_probabilities = [&] {
        probabilities<BQ>(p, lane, columns[buffer], i0, key, window, scale_log2);
        i0 += 2 * BQ;
    };
    const auto to_factors = [&] {
        gradients<BQ>(ds, p, lane);
        pack(a, p);
        pack(c, ds);
    };
    wgmma_fence();
    start_product<D, BK, BQ>(p, k, query);
    start_product<D, BK, BQ>(ds, v, dout);
    prepare();
    wgmma_wait<0>();
    keep(p);
    keep(ds);
    to_probabilities();
    to_factors();
    for (int n = 1; n < count; n++) {
        const uint32_t before = buffer * STEP;
        buffer = (buffer + 1) % BUFFERS;
        panels_wait_for<BUFFERS - 3>();
        warpgroup_sync(warpgroup); // this chunk has arrived, and no warp reads the one two before
        wgmma_fence();
        start_product<D, BK, BQ>(p, k, query + buffer * STEP);
        start_sum(dv.c, a, dout + before);
        start_sum(dk.c, c, query + before);
        start_product<D, BK, BQ>(ds, v, dout + buffer * STEP);
        prepare();
        wgmma_wait<3>();
        keep(p);
        to_probabilities();
        keep(p);
        // Besides loading, the branches of this call keep ptxas from moving exponentials behind the wait for all
        // products.
        source.load(mine, columns, (buffer + BUFFERS - 2) % BUFFERS);
        wgmma_wait<0>();
        keep(ds);
        keep(dv.c);
        keep(dk.c);
        to_factors();
    }
    wgmma_fence();
    start_sum(dv.c, a, dout + buffer * STEP);
    start_sum(dk.c, c, query + buffer * STEP);
}

// Compute the gradients of 64 keys of one key head per block, as the common source does. Both of its warpgroups own all
// of these keys and take turns at the chunks of queries of all heads of the group, each at its own pace, so that one
// multiplies while the other computes exponentials. At the end the first adds the sums of both for values, the second
// those for keys. K and V stay in shared memory: ptxas 13.0 overwrote a left factor that was kept in registers through
// the whole loop.
template <int D>
static __device__ __forceinline__ void
attn_bwd_dkv_wgmma(lp *dqkv, const lp *dout, const lp *qkv, const float *lse, const float *delta,
                   const int32_t *doc_start, int B, int S, int H, int K, int window, float scale)
{
    constexpr int BK = 64, BQ = query_chunks<D>::BQ;
    extern __shared__ __align__(1024) unsigned char nj_dynamic[];
    auto &memory = *reinterpret_cast<block_memory<D> *>(nj_dynamic);
    const int b = blockIdx.y, key0 = blockIdx.z * BK, group = H / K;
    // ptxas knows that votes and maxima are uniform in a warp: counters and descriptors of the loop stay in uniform
    // registers, which wgmma reads without a copy.
    const int warpgroup = __any_sync(0xffffffffu, threadIdx.x >= WARPGROUP);
    const int key = key0 + threadIdx.x % WARPGROUP / 32 * 16;
    auto &mine = memory.chunks[warpgroup];
    auto &columns = memory.columns[warpgroup];
    const heads<D> at(H, K, blockIdx.x * group);
    qkv += (int64_t)b * S * at.row;
    dqkv += (int64_t)b * S * at.row;
    const int32_t *starts = doc_start ? doc_start + (int64_t)b * S : NULL;

    const int end = __reduce_max_sync(
        0xffffffffu, query_end(starts, key0, BK, window_end(key0 + BK, window, S)));
    const int length = (end - key0 + BQ - 1) / BQ * BQ;
    const int chunks = group * (length / BQ), count = (chunks + 1 - warpgroup) / 2;
    const int i0 = key0 + warpgroup * BQ;
    const int thread = threadIdx.x % WARPGROUP, row = i0 + thread / (D / 8);
    query_source<D> source = {
        .query = qkv + (int64_t)row * at.row + at.q + thread % (D / 8) * 8,
        .dout = dout + ((int64_t)b * S + row) * H * D + at.q + thread % (D / 8) * 8,
        .column = (thread < BQ ? lse : delta) + ((int64_t)b * H + blockIdx.x * group) * S + i0 +
                  thread % BQ,
        .starts = starts,
        .i0 = i0,
        .end = key0 + length,
        .length = length,
        .S = S,
        .left = count,
        .query_row = at.row,
        .dout_row = H * D};

    panels_load<D, BK, WARPGROUP>(
        mine.keys, qkv + (warpgroup == 0 ? at.k : at.v) + (int64_t)key0 * at.row, at.row, S - key0);
    acc16<lp, D> dk, dv;
    dk.zero();
    dv.zero();
#pragma unroll
    for (int n = 0; n < BUFFERS - 1; n++)
        source.load(mine, columns, n);
    panels_wait_for<BUFFERS - 2>();
    __syncthreads(); // keys, values and the first chunk have arrived
    if (count > 0)
        sum_chunks<D>(dk, dv, panels<BK>(memory.chunks[0].keys), panels<BK>(memory.chunks[1].keys),
                      mine, columns, source, warpgroup, count, i0, key, window, scale * LOG2_E);
    wgmma_wait<0>();
    keep(dv.c);
    keep(dk.c);
    // Let both warpgroups pass equally many barriers, though the first may have one chunk more: racecheck counts them,
    // and would report the exchange below.
    if (warpgroup == 1 && count > 0 && chunks % 2 == 1)
        warpgroup_sync(warpgroup);
    warpgroup_sync(warpgroup); // no warp reads the chunks of this warpgroup any more
    if (warpgroup == 0)
        leave<D>(mine.query[0], dk);
    else
        leave<D>(mine.query[0], dv);
    __syncthreads();
    if (warpgroup == 0) {
        add<D>(dv, memory.chunks[1].query[0]);
        store_rows<D>(dv, mine.dout[0], dqkv + at.v, at.row, key, S);
    } else {
        add<D>(dk, memory.chunks[0].query[0]);
        dk.multiply(scale, scale);
        store_rows<D>(dk, mine.dout[0], dqkv + at.k, at.row, key, S);
    }
}

// Shared memory with heads of 256: two buffers of 64 queries.
struct wide_memory {
    static constexpr int D = 256, BQ = 64;
    lp keys[64 * D], values[64 * D], query[2][BQ * D], dout[2][BQ * D];
    float probabilities[BQ / 2 * WARPGROUP];
    query_columns<BQ> columns[2];
};
static_assert(sizeof(wide_memory) == 214528, "this is arch_smem in the contract");

// Compute the gradients of 64 keys with heads of 256. The registers of a warpgroup hold the sums of one gradient: the
// first computes probabilities and the gradient of values, the second the factors of probabilities and the gradient of
// keys. Every product has all 64 keys as rows.
static __device__ __forceinline__ void attn_bwd_dkv_wide(lp *dqkv, const lp *dout, const lp *qkv,
                                                         const float *lse, const float *delta,
                                                         const int32_t *doc_start, int S, int H,
                                                         int K, int window, float scale)
{
    constexpr int D = wide_memory::D, BK = 64, BQ = wide_memory::BQ;
    extern __shared__ __align__(1024) unsigned char nj_dynamic[];
    auto &memory = *reinterpret_cast<wide_memory *>(nj_dynamic);
    const int key0 = blockIdx.z * BK, key = key0 + threadIdx.x % WARPGROUP / 32 * 16;
    const int second = warpgroup_id();
    const heads<D> at(H, K, blockIdx.x * (H / K));
    query_tiles<lp, D, BQ> from;
    from.columns = memory.columns;
    from.find(dout, qkv, lse, delta, doc_start, H, K, S, window);
    const auto load = [&](int step) {
        const int i0 = from.first_query(step);
        const int64_t head = (from.head0 + step / from.a_head) * D;
        panels_load<D, BQ>(memory.query[step % 2], from.qkv + head + (int64_t)i0 * at.row, at.row,
                           S - i0);
        panels_load<D, BQ>(memory.dout[step % 2], from.dout + head + (int64_t)i0 * H * D, H * D,
                           S - i0);
        from.load_columns(step);
    };

    panels_load<D, BK>(memory.keys, from.qkv + at.k + (int64_t)key0 * at.row, at.row, S - key0);
    panels_load<D, BK>(memory.values, from.qkv + at.v + (int64_t)key0 * at.row, at.row, S - key0);
    load(0);
    acc16<lp, D> acc;
    acc.zero();
    const uint32_t own = panels<BK>(second ? memory.values : memory.keys);
    const int steps = H / K * from.a_head;
    float *shared = memory.probabilities + threadIdx.x % WARPGROUP;
    panels_wait();
    __syncthreads(); // keys, values and the first queries have arrived
    for (int step = 0; step < steps; step++) {
        const uint32_t query = panels<BQ>(memory.query[step % 2]);
        const uint32_t douts = panels<BQ>(memory.dout[step % 2]);
        const auto &columns = memory.columns[step % 2];
        float s[BQ / 8][4];
        uint32_t a[BQ / 16][4];
        wgmma_fence();
        start_product<D, BK, BQ>(s, own, second ? douts : query);
        __syncthreads(); // no warp reads the other buffers, or probabilities, any more
        if (step + 1 < steps)
            load(step + 1);
        wgmma_wait<0>();
        keep(s);
        if (second) {
            subtract_delta(s, columns, 0);
        } else {
            score_probabilities(s, columns, from.first_query(step), 0, key, window, scale * LOG2_E);
#pragma unroll
            for (int n = 0; n < BQ / 2; n++)
                shared[n * WARPGROUP] = s[n / 4][n % 4];
        }
        panels_wait();
        __syncthreads(); // the next queries, and all probabilities, are there
        if (second) {
#pragma unroll
            for (int n = 0; n < BQ / 2; n++)
                s[n / 4][n % 4] *= shared[n * WARPGROUP];
        }
        pack(a, s);
        wgmma_fence();
        start_sum(acc.c, a, second ? query : douts);
        wgmma_wait<0>();
        keep(acc.c);
    }
    __syncthreads(); // no warp reads queries any more
    if (second)
        acc.multiply(scale, scale);
    store_rows<D>(acc, memory.query[second], dqkv + (from.qkv - qkv) + (second ? at.k : at.v),
                  at.row, key, S);
}

template <>
__device__ __forceinline__ void
attn_bwd_dkv<lp, 64>(lp *dqkv, const lp *dout, const lp *qkv, const float *lse, const float *delta,
                     const int32_t *doc_start, int B, int S, int H, int K, int window, float scale)
{
    attn_bwd_dkv_wgmma<64>(dqkv, dout, qkv, lse, delta, doc_start, B, S, H, K, window, scale);
}

template <>
__device__ __forceinline__ void
attn_bwd_dkv<lp, 128>(lp *dqkv, const lp *dout, const lp *qkv, const float *lse, const float *delta,
                      const int32_t *doc_start, int B, int S, int H, int K, int window, float scale)
{
    attn_bwd_dkv_wgmma<128>(dqkv, dout, qkv, lse, delta, doc_start, B, S, H, K, window, scale);
}

template <>
__device__ __forceinline__ void
attn_bwd_dkv<lp, 256>(lp *dqkv, const lp *dout, const lp *qkv, const float *lse, const float *delta,
                      const int32_t *doc_start, int B, int S, int H, int K, int window, float scale)
{
    attn_bwd_dkv_wide(dqkv, dout, qkv, lse, delta, doc_start, S, H, K, window, scale);
}
