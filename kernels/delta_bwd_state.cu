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
    extern __shared__ __align__(512) uint4 nj_shared[]; // lp: keys, queries, solve, scores
    const int h = blockIdx.x / PARTS, b = blockIdx.y, warp = threadIdx.x / 32;
    const int column = blockIdx.x % PARTS * 64 + warp * 16;
    T *keys = reinterpret_cast<T *>(nj_shared), *queries = keys + CHUNK * D;
    T *matrices = queries + CHUNK * D;
    float *scratch = reinterpret_cast<float *>(nj_shared) + warp * 16 * (D + CHUNK);
    float *scratch_chunk = scratch + 16 * D;
    const delta_heads<D> heads(H, K, h);
    const int64_t width = (int64_t)H * D, out = (int64_t)h * D + column;
    sums16<D> now;
    clear<D>(now);
#pragma unroll 1
    for (int chunk = (S - 1) / CHUNK; chunk >= 0; chunk--) {
        const int first = chunk * CHUNK, rows = min(CHUNK, S - first);
        const int64_t at = chunk_at(b, h, chunk, H, S), row = (int64_t)b * S + first;
        const T *in = qkv + row * heads.row;
        const T *t = solve + at * CHUNK * CHUNK, *p = scores + at * CHUNK * CHUNK;
        const float *f = gates + at * DELTA_FACTORS * CHUNK;
        if constexpr (sizeof(T) == 2) {
            __syncthreads(); // no warp reads the last chunk's tiles any more
            tile_load<T, D, CHUNK>(keys, in + heads.k, heads.row, 0, rows);
            tile_load<T, D, CHUNK>(queries, in + heads.q, heads.row, 0, rows);
            tile_load<T, CHUNK, CHUNK>(matrices, t, CHUNK, 0, CHUNK);
            tile_load<T, CHUNK, CHUNK>(matrices + CHUNK * CHUNK, p, CHUNK, 0, CHUNK);
        }
        store_rows<T, D>(dstates + (at * D + column) * D, D, now);
        sums16<CHUNK> from, u, r;
        load_columns(from, dout + row * width + out, width, rows);
        first_columns(from, rows);
        left16<T, D> behind;
        behind.take(now, scratch);
        cp_wait();
        if constexpr (sizeof(T) == 2)
            __syncthreads();
        const auto k = tile<T, D>::of(keys, in + heads.k, heads.row, rows);
        clear<CHUNK>(u);
        add_by_rows<T, CHUNK, D>(u, behind, k);
        by_columns(u, f + DELTA_K_OUT * CHUNK);
        left16<T, CHUNK> left;
        left.take(from, scratch_chunk);
        add_by_columns<T, CHUNK, CHUNK>(
            u, left, tile<T, CHUNK>::of(matrices + CHUNK * CHUNK, p, CHUNK, CHUNK));
        first_columns(u, rows);
        left.take(u, scratch_chunk);
        clear<CHUNK>(r);
        add_by_columns<T, CHUNK, CHUNK>(r, left, tile<T, CHUNK>::of(matrices, t, CHUNK, CHUNK));
        first_columns(r, rows);
        store_columns(dr + row * width + out, width, rows, r);

        decay<D>(now, f[DELTA_CARRY * CHUNK]);
        by_columns(from, f + DELTA_Q_IN * CHUNK);
        left.take(from, scratch_chunk);
        add_by_columns<T, D, CHUNK>(now, left,
                                    tile<T, D>::of(queries, in + heads.q, heads.row, rows));
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
