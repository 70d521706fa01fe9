// SPDX-License-Identifier: Apache-2.0
#include "delta.cuh"

// A warp has 16 columns of values of a head, as in delta_fwd, and goes through the sequence from its end with that part
// of the state's gradient in registers.
template <typename T, int D>
static __device__ __forceinline__ void
delta_bwd_state(T *dr, T *dstates, const T *dout, const T *qkv, const float *gates, const T *solve,
                const T *scores, int B, int S, int H, int K)
{
    constexpr int PARTS = D / 64;
    constexpr bool LP = sizeof(T) == 2;
    extern __shared__ __align__(512)
        uint4 nj_shared[]; // lp: tiles of NJ_DELTA_STAGES chunks; float: rows of each warp
    const int h = blockIdx.x / PARTS, b = blockIdx.y, warp = threadIdx.x / 32;
    const int part = blockIdx.x % PARTS * 64, column = part + warp * 16;
    float *scratch = reinterpret_cast<float *>(nj_shared) + warp * 16 * (D + CHUNK);
    float *scratch_chunk = scratch + 16 * D;
    const delta_heads<D> heads(H, K, h);
    const int64_t width = (int64_t)H * D, out = (int64_t)h * D + column;
    const int64_t rows_before = (int64_t)b * S, matrices = chunk_at(b, h, 0, H, S) * CHUNK * CHUNK;
    const T *sequence = qkv + rows_before * heads.row;
    const chunk_source<T, D> source = {sequence + heads.q,
                                       sequence + heads.k,
                                       solve + matrices,
                                       scores + matrices,
                                       dout + rows_before * width + h * D + part,
                                       heads.row,
                                       (int)width,
                                       S};
    sums16<D> now;
    clear<D>(now);
    if constexpr (LP && NJ_DELTA_STAGES > 1)
        source.fetch(nj_shared, (S - 1) / CHUNK);
#pragma unroll 1
    for (int chunk = (S - 1) / CHUNK; chunk >= 0; chunk--) {
        const int first = chunk * CHUNK, rows = min(CHUNK, S - first);
        const int64_t at = chunk_at(b, h, chunk, H, S), row = (int64_t)b * S + first;
        const T *in = qkv + row * heads.row;
        const T *t = solve + at * CHUNK * CHUNK, *p = scores + at * CHUNK * CHUNK;
        const float *f = gates + at * DELTA_FACTORS * CHUNK;
        const chunk_tiles<T, D> own = source.tiles(nj_shared, chunk);
        if constexpr (LP && NJ_DELTA_STAGES == 1) {
            __syncthreads(); // no warp reads the last chunk's tiles any more
            source.fetch(nj_shared, chunk);
        }
        store_rows<T, D>(dstates + (at * D + column) * D, D, now);
        sums16<CHUNK> from, u, r;
        left16<T, D> behind;
        behind.take(now, scratch);
        if constexpr (LP) {
            cp_wait();
            __syncthreads();
            if (NJ_DELTA_STAGES > 1 && chunk > 0)
                source.fetch(nj_shared, chunk - 1);
        }
        load_columns(from, own.columns, warp * 16, dout + row * width + h * D + part, width, rows);
        first_columns(from, rows);
        const auto k = tile<T, D>::of(own.keys, in + heads.k, heads.row, rows);
        clear<CHUNK>(u);
        add_by_rows<T, CHUNK, D>(u, behind, k);
        by_columns(u, f + DELTA_K_OUT * CHUNK);
        left16<T, CHUNK> left;
        left.take(from, scratch_chunk);
        add_by_columns<T, CHUNK, CHUNK>(u, left, tile<T, CHUNK>::of(own.scores, p, CHUNK, CHUNK));
        first_columns(u, rows);
        left.take(u, scratch_chunk);
        clear<CHUNK>(r);
        add_by_columns<T, CHUNK, CHUNK>(r, left, tile<T, CHUNK>::of(own.solve, t, CHUNK, CHUNK));
        first_columns(r, rows);
        store_columns(dr + row * width + out, width, rows, r);

        decay<D>(now, f[DELTA_CARRY * CHUNK]);
        by_columns(from, f + DELTA_Q_IN * CHUNK);
        left.take(from, scratch_chunk);
        add_by_columns<T, D, CHUNK>(now, left,
                                    tile<T, D>::of(own.queries, in + heads.q, heads.row, rows));
        by_columns(r, f + DELTA_K_IN * CHUNK);
        by_columns(r, f + DELTA_BETA * CHUNK);
#pragma unroll
        for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                r[n][e] = -r[n][e];
        left.take(r, scratch_chunk);
        add_by_columns<T, D, CHUNK>(now, left, k);
    }
}
