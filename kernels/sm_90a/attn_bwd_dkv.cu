// SPDX-License-Identifier: Apache-2.0
#include "../attn_bwd_dkv.cu"
#include "wgmma.cuh"

// What a warpgroup has in shared memory: two chunks of 64 queries, the next on its way while one is
// used.
template <int D> struct query_chunks {
    lp keys[PANEL * D]; // of the first warpgroup; of the second: values
    lp query[2][PANEL * D], dout[2][PANEL * D];
    query_columns<PANEL> columns[2];
};

// Products of keys from `key` on with queries from i0 on become probabilities.
static __device__ __forceinline__ void probabilities(float (&p)[PANEL / 8][4],
                                                     const query_columns<PANEL> &columns, int i0,
                                                     int key, float scale_log2)
{
    const int g = lane_id() / 4, t = lane_id() % 4;
    if (i0 < key + 15) {
        const int from[2] = {key + g - i0, key + g + 8 - i0}, to[2] = {PANEL, PANEL};
        mask(p, from, to);
    }
    if (columns.start[PANEL - 1] > key) {
#pragma unroll
        for (int n = 0; n < PANEL / 8; n++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                if (columns.start[8 * n + 2 * t + e % 2] > key + g + e / 2 * 8)
                    p[n][e] = -INFINITY;
            }
        }
    }
#pragma unroll
    for (int n = 0; n < PANEL / 8; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            p[n][e] = ex2(p[n][e] * scale_log2 - columns.lse[8 * n + 2 * t + e % 2] * LOG2_E);
    }
}

// Products of dout and values become gradients of the scores.
static __device__ __forceinline__ void gradients(float (&ds)[PANEL / 8][4],
                                                 const float (&p)[PANEL / 8][4],
                                                 const query_columns<PANEL> &columns)
{
    const int t = lane_id() % 4;
#pragma unroll
    for (int n = 0; n < PANEL / 8; n++) {
#pragma unroll
        for (int e = 0; e < 4; e++)
            ds[n][e] = p[n][e] * (ds[n][e] - columns.delta[8 * n + 2 * t + e % 2]);
    }
}

// As in the common source a block takes 64 keys of one key head. Both of its warpgroups own all of
// them and take turns at the chunks of 64 queries of all heads of the group, each at its own pace,
// so that one multiplies while the other works out exponentials. Sums of the two are added at the
// end.
template <int D>
static __device__ __forceinline__ void
attn_bwd_dkv_wgmma(lp *dqkv, const lp *dout, const lp *qkv, const float *lse, const float *delta,
                   const int32_t *doc_start, int B, int S, int H, int K, float scale)
{
    constexpr int BK = 64, BQ = PANEL;
    // One each for the two warpgroups.
    extern __shared__ __align__(1024) unsigned char chunks_of_0[];
    __shared__ __align__(1024) unsigned char chunks_of_1[sizeof(query_chunks<D>)];
    const int b = blockIdx.y, key0 = blockIdx.z * BK, group = H / K, head0 = blockIdx.x * group;
    const int warpgroup = warpgroup_id(), thread = threadIdx.x % WARPGROUP;
    const int key = key0 + thread / 32 * 16;
    auto &mine = *reinterpret_cast<query_chunks<D> *>(warpgroup == 0 ? chunks_of_0 : chunks_of_1);
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
        if (thread < BQ) {
            const int i = min(i0 + thread, S - 1);
            const int64_t at_row = ((int64_t)b * H + head) * S + i;
            query_columns<PANEL> &columns = mine.columns[buffer];
            cp4(&columns.lse[thread], lse + at_row, i0 + thread < S);
            cp4(&columns.delta[thread], delta + at_row, i0 + thread < S);
            if (starts)
                cp4(&columns.start[thread], starts + i, true);
            else
                columns.start[thread] = 0;
        }
    };

    const auto &chunks_0 = *reinterpret_cast<query_chunks<D> *>(chunks_of_0);
    const auto &chunks_1 = *reinterpret_cast<query_chunks<D> *>(chunks_of_1);
    panels_load<D, BK, WARPGROUP>(
        mine.keys, qkv + (warpgroup == 0 ? at.k : at.v) + (int64_t)key0 * at.row, at.row, S - key0);
    const uint32_t k = panels<BK>(chunks_0.keys), v = panels<BK>(chunks_1.keys);
    acc16<lp, D> dk, dv;
    dk.zero();
    dv.zero();
    const float scale_log2 = scale * LOG2_E;
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
#pragma unroll
        for (int n = 0; n < D / 16; n++)
            wgmma<0>(p, columns16<BK>(k, n), columns16<BQ>(queries, n), n > 0);
        wgmma_commit();
#pragma unroll
        for (int n = 0; n < D / 16; n++)
            wgmma<0>(ds, columns16<BK>(v, n), columns16<BQ>(douts, n), n > 0);
        wgmma_commit();
        wgmma_wait<1>();
        keep(p);
        probabilities(p, mine.columns[buffer], first, key, scale_log2);
        keep(p);
        wgmma_wait<0>();
        keep(ds);
        gradients(ds, p, mine.columns[buffer]);
        pack(a, p);
        pack(c, ds);
        wgmma_fence();
#pragma unroll
        for (int n = 0; n < BQ / 16; n++)
            wgmma<1>(dv.c, a[n], rows16_of(douts, n), true);
#pragma unroll
        for (int n = 0; n < BQ / 16; n++)
            wgmma<1>(dk.c, c[n], rows16_of(queries, n), true);
        wgmma_commit();
        wgmma_wait<0>();
        keep(dv.c);
        keep(dk.c);
    }
    wgmma_wait<0>();
    keep(dv.c);
    keep(dk.c);
    add_halves<lp, D>(dv, reinterpret_cast<float *>(chunks_of_0));
    add_halves<lp, D>(dk, reinterpret_cast<float *>(chunks_of_0));
    if (warpgroup != 0)
        return;
    dk.multiply(scale, scale);
    dqkv += (int64_t)b * S * at.row;
    dk.store(dqkv + at.k, at.row, key, S);
    dv.store(dqkv + at.v, at.row, key, S);
}

template <>
__device__ __forceinline__ void attn_bwd_dkv<lp, 64>(lp *dqkv, const lp *dout, const lp *qkv,
                                                     const lp * /* o */, const float *lse,
                                                     const float *delta, const int32_t *doc_start,
                                                     int B, int S, int H, int K, float scale)
{
    attn_bwd_dkv_wgmma<64>(dqkv, dout, qkv, lse, delta, doc_start, B, S, H, K, scale);
}
