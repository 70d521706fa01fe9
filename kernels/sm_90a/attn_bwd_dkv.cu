// SPDX-License-Identifier: Apache-2.0
#include "../attn_bwd_dkv.cu"
#include "wgmma.cuh"

// What a warpgroup has in shared memory: two chunks of BQ queries, the next on its way while one is
// used.
template <int D> struct query_chunks {
    static constexpr int BQ = 4096 / D;
    lp keys[64 * D]; // of the first warpgroup; of the second: values
    lp query[2][BQ * D], dout[2][BQ * D];
};

// Starts the copy of what queries from i0 on have one of each.
template <int BQ>
static __device__ __forceinline__ void columns_load(query_columns<BQ> &columns, const float *lse,
                                                    const float *delta, const int32_t *starts,
                                                    int i0, int S)
{
    const int thread = threadIdx.x % WARPGROUP, i = min(i0 + thread, S - 1);
    if (thread >= BQ)
        return;
    cp4(&columns.lse[thread], lse + i, i0 + thread < S);
    cp4(&columns.delta[thread], delta + i, i0 + thread < S);
    if (starts)
        cp4(&columns.start[thread], starts + i, true);
    else
        columns.start[thread] = 0;
}

// Products of keys from `key` on with queries from i0 on become probabilities.
template <int BQ>
static __device__ __forceinline__ void probabilities(float (&p)[BQ / 8][4],
                                                     const query_columns<BQ> &columns, int i0,
                                                     int key, float scale_log2)
{
    const int g = lane_id() / 4, t = lane_id() % 4;
    if (i0 < key + 15) {
        const int from[2] = {key + g - i0, key + g + 8 - i0}, to[2] = {BQ, BQ};
        mask(p, from, to);
    }
    if (columns.start[BQ - 1] > key) {
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
            p[n][e] = ex2(p[n][e] * scale_log2 - columns.lse[8 * n + 2 * t + e % 2] * LOG2_E);
    }
}

// Products of dout and values become gradients of the scores.
template <int BQ>
static __device__ __forceinline__ void
gradients(float (&ds)[BQ / 8][4], const float (&p)[BQ / 8][4], const query_columns<BQ> &columns)
{
    const int t = lane_id() % 4;
#pragma unroll
    for (int n = 0; n < BQ / 8; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            ds[n][e] = p[n][e] * (ds[n][e] - columns.delta[8 * n + 2 * t + e % 2]);
    }
}

// As in the common source a block takes 64 keys of one key head. Both of its warpgroups own all of
// them and take turns at the chunks of queries of all heads of the group, each at its own pace, so
// that one multiplies while the other works out exponentials. Sums of the two are added at the end.
// K and V stay in shared memory: a left factor in registers through the whole loop was overwritten
// by ptxas 13.0.
template <int D>
static __device__ __forceinline__ void
attn_bwd_dkv_wgmma(lp *dqkv, const lp *dout, const lp *qkv, const float *lse, const float *delta,
                   const int32_t *doc_start, int B, int S, int H, int K, float scale)
{
    constexpr int BK = 64, BQ = query_chunks<D>::BQ;
    // One each for the two warpgroups; behind the first: columns[warpgroup][buffer].
    extern __shared__ __align__(1024) unsigned char chunks_of_0[];
    __shared__ __align__(1024) unsigned char chunks_of_1[sizeof(query_chunks<D>)];
    const int b = blockIdx.y, key0 = blockIdx.z * BK, group = H / K, head0 = blockIdx.x * group;
    const int warpgroup = warpgroup_id(), key = key0 + threadIdx.x % WARPGROUP / 32 * 16;
    auto &mine = *reinterpret_cast<query_chunks<D> *>(warpgroup == 0 ? chunks_of_0 : chunks_of_1);
    auto columns =
        reinterpret_cast<query_columns<BQ> *>(chunks_of_0 + sizeof(mine)) + 2 * warpgroup;
    const heads<D> at(H, K, head0);
    qkv += (int64_t)b * S * at.row;
    dout += (int64_t)b * S * H * D;
    const int32_t *starts = doc_start ? doc_start + (int64_t)b * S : NULL;

    const int end = query_end(starts, key0, BK, S);
    const int length = (end - key0 + BQ - 1) / BQ * BQ, head_end = head0 + group;
    int head = head0, i0 = key0 + (warpgroup - 2) * BQ;
    const auto load_next = [&](int buffer) {
        for (i0 += 2 * BQ; i0 >= key0 + length; i0 -= length)
            head++;
        if (head >= head_end)
            return;
        panels_load<D, BQ, WARPGROUP>(mine.query[buffer], qkv + (int64_t)i0 * at.row + head * D,
                                      at.row, S - i0);
        panels_load<D, BQ, WARPGROUP>(mine.dout[buffer], dout + ((int64_t)i0 * H + head) * D, H * D,
                                      S - i0);
        columns_load(columns[buffer], lse + ((int64_t)b * H + head) * S,
                     delta + ((int64_t)b * H + head) * S, starts, i0, S);
    };

    const auto &chunks_0 = *reinterpret_cast<query_chunks<D> *>(chunks_of_0);
    const auto &chunks_1 = *reinterpret_cast<query_chunks<D> *>(chunks_of_1);
    panels_load<D, BK, WARPGROUP>(
        mine.keys, qkv + (warpgroup == 0 ? at.k : at.v) + (int64_t)key0 * at.row, at.row, S - key0);
    const uint32_t k = panels<BK>(chunks_0.keys), v = panels<BK>(chunks_1.keys);
    acc16<lp, D> dk, dv;
    dk.zero();
    dv.zero();
    load_next(0);
    panels_wait();
    __syncthreads(); // keys and values are there
    for (int buffer = 0; head < head_end; buffer ^= 1) {
        const int first = i0;
        panels_wait();
        warpgroup_sync(warpgroup); // this chunk is there, and the other is not used any more
        load_next(buffer ^ 1);
        const uint32_t queries = panels<BQ>(mine.query[buffer]);
        const uint32_t douts = panels<BQ>(mine.dout[buffer]);
        float p[BQ / 8][4], ds[BQ / 8][4];
        uint32_t a[BQ / 16][4], c[BQ / 16][4];
        wgmma_fence();
        start_product<D, BK, BQ>(p, k, queries);
        start_product<D, BK, BQ>(ds, v, douts);
        wgmma_wait<1>();
        keep(p);
        probabilities<BQ>(p, columns[buffer], first, key, scale * LOG2_E);
        keep(p);
        wgmma_wait<0>();
        keep(ds);
        gradients<BQ>(ds, p, columns[buffer]);
        pack(a, p);
        pack(c, ds);
        wgmma_fence();
        start_sum(dv.c, a, douts);
        start_sum(dk.c, c, queries);
        wgmma_wait<0>();
        keep(dv.c);
        keep(dk.c);
    }
    wgmma_wait<0>();
    keep(dv.c);
    keep(dk.c);
    add_halves<lp, D>(dv, reinterpret_cast<float *>(chunks_of_0));
    add_halves<lp, D>(dk, reinterpret_cast<float *>(chunks_of_1));
    if (warpgroup != 0)
        return;
    dk.multiply(scale, scale);
    dqkv += (int64_t)b * S * at.row;
    dk.store(dqkv + at.k, at.row, key, S);
    dv.store(dqkv + at.v, at.row, key, S);
}

template <>
__device__ __forceinline__ void
attn_bwd_dkv<lp, 64>(lp *dqkv, const lp *dout, const lp *qkv, const float *lse, const float *delta,
                     const int32_t *doc_start, int B, int S, int H, int K, float scale)
{
    attn_bwd_dkv_wgmma<64>(dqkv, dout, qkv, lse, delta, doc_start, B, S, H, K, scale);
}

template <>
__device__ __forceinline__ void
attn_bwd_dkv<lp, 128>(lp *dqkv, const lp *dout, const lp *qkv, const float *lse, const float *delta,
                      const int32_t *doc_start, int B, int S, int H, int K, float scale)
{
    attn_bwd_dkv_wgmma<128>(dqkv, dout, qkv, lse, delta, doc_start, B, S, H, K, scale);
}
