// SPDX-License-Identifier: Apache-2.0
#include "delta.cuh"

// Return the rows from `first` on, of 32, that are the last of their documents and have a slot, as bits.
static __device__ __forceinline__ uint32_t stored_rows(const int32_t *doc_start,
                                                       const int32_t *slot, int first, int S)
{
    const int s = first + lane_id();
    uint32_t found = 0;
    if (s < S && slot[s] >= 0 && (s + 1 == S || (doc_start && doc_start[s + 1] != doc_start[s])))
        found = 1u << lane_id();
#pragma unroll
    for (int d = 16; d > 0; d >>= 1)
        found |= __shfl_xor_sync(0xffffffffu, found, d);
    return found;
}

// A chunk of a head, for the warp that has 16 of its columns of values.
template <typename T, int D> struct delta_chunk {
    tile<T, D> keys;
    const float *gates, *logs;
    float *scratch;

    // Return the state behind row e, whose document begins at `begin`.
    __device__ __forceinline__ void state_behind(sums16<D> &out, const sums16<D> &state,
                                                 const sums16<CHUNK> &updates, int e,
                                                 int begin) const
    {
        const float end = logs[DELTA_LOG * CHUNK + e], rest = logs[DELTA_LOG_REST * CHUNK + e];
        const float keep = begin < 0 ? exp_fast(end + rest) : 0;
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                out[n][i] = begin < 0 ? state[n][i] * keep : 0;
        sums16<CHUNK> u;
#pragma unroll
        for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int j = column_of(n, i);
                const float log =
                    (end - logs[DELTA_LOG * CHUNK + j]) + (rest - logs[DELTA_LOG_REST * CHUNK + j]);
                const float by = exp_fast(log) * gates[DELTA_K_NORM * CHUNK + j];
                u[n][i] = j <= e && j >= begin ? updates[n][i] * by : 0;
            }
        left16<T, CHUNK> left;
        left.take(u, scratch);
        add_by_columns<T, D, CHUNK>(out, left, keys);
    }
    // Store the states behind the last rows of documents, `apart` elements from slot to slot.
    __device__ __forceinline__ void store_states(float *to, int64_t apart, const int32_t *doc_start,
                                                 const int32_t *slot, const sums16<D> &state,
                                                 const sums16<CHUNK> &updates, int first,
                                                 int S) const
    {
#pragma unroll 1
        for (int half = 0; half < CHUNK; half += 32) {
            const uint32_t found = stored_rows(doc_start, slot, first + half, S);
#pragma unroll 1
            for (int e = half; e < half + 32; e++) {
                if ((found >> (e - half) & 1) == 0)
                    continue;
                sums16<D> behind;
                state_behind(behind, state, updates, e,
                             (doc_start ? doc_start[first + e] : 0) - first);
                store_rows<float, D>(to + slot[first + e] * apart, D, behind);
            }
        }
    }
};

// A warp has 16 columns of values of a head, which are rows of the state, and goes through the sequence with that part
// of the state in registers; no warp needs another's.
template <typename T, int D>
static __device__ __forceinline__ void
delta_fwd(T *o, T *states, T *updates, float *state, const T *qkv, const float *gates,
          const float *logs, const T *solve, const T *scores, const int32_t *doc_start,
          const int32_t *slot, int B, int S, int H, int K, int G)
{
    constexpr int PARTS = D / 64;
    constexpr bool LP = sizeof(T) == 2;
    extern __shared__ __align__(512)
        uint4 nj_shared[]; // lp: tiles of NJ_DELTA_STAGES chunks; float: rows of each warp
    const int h = blockIdx.x / PARTS, b = blockIdx.y, warp = threadIdx.x / 32;
    const int part = blockIdx.x % PARTS * 64, column = part + warp * 16;
    float *scratch = reinterpret_cast<float *>(nj_shared) + warp * 16 * (D + CHUNK);
    const delta_heads<D> heads(H, K, h);
    const int64_t width = (int64_t)H * D, out = (int64_t)h * D + column;
    const int64_t rows_before = (int64_t)b * S, matrices = chunk_at(b, h, 0, H, S) * CHUNK * CHUNK;
    const T *sequence = qkv + rows_before * heads.row;
    const chunk_source<T, D> source = {
        sequence + heads.q,        sequence + heads.k, solve + matrices, scores + matrices,
        sequence + heads.v + part, heads.row,          heads.row,        S};
    sums16<D> now;
    clear<D>(now);
    if constexpr (LP && NJ_DELTA_STAGES > 1)
        source.fetch(nj_shared, 0);
#pragma unroll 1
    for (int chunk = 0, first = 0; first < S; chunk++, first += CHUNK) {
        const int64_t at = chunk_at(b, h, chunk, H, S), row = (int64_t)b * S + first;
        const int rows = min(CHUNK, S - first);
        const T *in = qkv + row * heads.row;
        const T *t = solve + at * CHUNK * CHUNK, *p = scores + at * CHUNK * CHUNK;
        const float *f = gates + at * DELTA_FACTORS * CHUNK, *l = logs + at * DELTA_LOGS * CHUNK;
        const chunk_tiles<T, D> own = source.tiles(nj_shared, chunk);
        if constexpr (LP && NJ_DELTA_STAGES == 1) {
            __syncthreads(); // no warp reads the last chunk's tiles any more
            source.fetch(nj_shared, chunk);
        }
        if (states)
            store_rows<T, D>(states + (at * D + column) * D, D, now);
        sums16<CHUNK> r, u;
        left16<T, D> before;
        before.take(now, scratch);
        if constexpr (LP) {
            cp_wait();
            __syncthreads();
            if (NJ_DELTA_STAGES > 1 && first + CHUNK < S)
                source.fetch(nj_shared, chunk + 1);
        }
        load_columns(r, own.columns, warp * 16, in + heads.v + part, heads.row, rows);
        const delta_chunk<T, D> c = {tile<T, D>::of(own.keys, in + heads.k, heads.row, rows), f, l,
                                     scratch + 16 * D};
        clear<CHUNK>(u);
        add_by_rows<T, CHUNK, D>(u, before, c.keys);
        by_columns(u, f + DELTA_K_IN * CHUNK);
#pragma unroll
        for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                r[n][e] -= u[n][e];
        by_columns(r, f + DELTA_BETA * CHUNK);
        first_columns(r, rows);
        left16<T, CHUNK> left;
        left.take(r, c.scratch);
        clear<CHUNK>(u);
        add_by_rows<T, CHUNK, CHUNK>(u, left, tile<T, CHUNK>::of(own.solve, t, CHUNK, CHUNK));
        first_columns(u, rows);
        if (updates)
            store_columns(updates + row * width + out, width, rows, u);

        sums16<CHUNK> y;
        clear<CHUNK>(y);
        add_by_rows<T, CHUNK, D>(y, before,
                                 tile<T, D>::of(own.queries, in + heads.q, heads.row, rows));
        by_columns(y, f + DELTA_Q_IN * CHUNK);
        left.take(u, c.scratch);
        add_by_rows<T, CHUNK, CHUNK>(y, left, tile<T, CHUNK>::of(own.scores, p, CHUNK, CHUNK));
        store_columns(o + row * width + out, width, rows, y);

        if (state)
            c.store_states(state + ((int64_t)h * D + column) * D, (int64_t)H * D * D,
                           doc_start ? doc_start + (int64_t)b * S : nullptr, slot + (int64_t)b * S,
                           now, u, first, S);
        decay<D>(now, f[DELTA_CARRY * CHUNK]);
        by_columns(u, f + DELTA_K_OUT * CHUNK);
        left.take(u, c.scratch);
        add_by_columns<T, D, CHUNK>(now, left, c.keys);
    }
}
