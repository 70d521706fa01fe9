// SPDX-License-Identifier: Apache-2.0
#include "delta.cuh"

// Sums that leave the warps, in shared memory, for one chunk of a value head.
struct delta_dots {
    float queries[CHUNK];            // the query of each row with its gradient
    float left[CHUNK], right[CHUNK]; // its key with both parts of the gradient
    float out[CHUNK];                // its key with what goes to the state behind the chunk
    float values[CHUNK];             // its value with the gradient of r
    float states[NJ_THREADS / 32]; // the state before the chunk with the gradient of that behind it
};

// Return the sums of the lane's two rows with rows of an array; rows beyond the limit repeat the last one.
template <typename T, int D>
static __device__ __forceinline__ void row_dots(float (&sum)[2], const sums16<D> &c, const T *src,
                                                int64_t ld, int row, int limit)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const T *from = src + min(row + row_of(2 * r), limit - 1) * ld;
        float x = 0;
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                x = fmaf(c[n][2 * r + e], to_f32(from[column_of(n, e)]), x);
        sum[r] = quad_sum(x);
    }
}

// Add f c to the gradient, a factor for each of the lane's two rows.
template <int D>
static __device__ __forceinline__ void add_scaled(sums16<D> &grad, sums16<D> &c,
                                                  const float (&f)[2])
{
#pragma unroll
    for (int n = 0; n < D / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            c[n][e] *= f[e / 2];
            grad[n][e] += c[n][e];
        }
}

// One value head of a chunk, as all warps see it.
template <typename T, int D> struct delta_head {
    const T *q, *k, *v, *dout, *dr, *updates; // the chunk's first row
    const T *state, *dstate;
    const float *gates, *logs;
    const int32_t *starts; // NULL: the document begins with the sequence
    int64_t width;
    int row, first, rows;

    // Return the first row of the document of row i, counted from the chunk's first.
    __device__ __forceinline__ int begin(int i) const
    {
        return (starts ? starts[min(i, rows - 1)] : 0) - first;
    }
    __device__ __forceinline__ float factor(enum delta_factor which, int i) const
    {
        return gates[which * CHUNK + i];
    }
    // Return the factors of the lane's two rows.
    __device__ __forceinline__ void factors(float (&f)[2], enum delta_factor which, int at) const
    {
        f[0] = factor(which, at + row_of(0));
        f[1] = factor(which, at + row_of(2));
    }
};

// Compute, for 16 rows i of the chunk, the gradients of the scores, or of the system, times the decay from row j and
// the reciprocal lengths of both rows.
template <typename T, int D>
static __device__ __forceinline__ void pair_gradients(T *matrix, const delta_head<T, D> &c,
                                                      const tile<T, D> &updates, int at,
                                                      bool of_scores)
{
    left16<T, D> left;
    left.load(of_scores ? c.dout : c.dr, c.width, at, c.rows);
    sums16<CHUNK> s;
    clear<CHUNK>(s);
    add_by_rows<T, CHUNK, D>(s, left, updates);
    float by[2], log[2], rest[2];
    int begin[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = at + row_of(2 * r);
        by[r] = of_scores ? c.factor(DELTA_Q_NORM, i) * rsqrtf((float)D)
                          : -c.factor(DELTA_BETA, i) * c.factor(DELTA_K_NORM, i);
        log[r] = c.logs[DELTA_LOG * CHUNK + i];
        rest[r] = c.logs[DELTA_LOG_REST * CHUNK + i];
        begin[r] = c.begin(i);
    }
#pragma unroll
    for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int i = at + row_of(2 * r);
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int j = column_of(n, e);
                const float decay = (log[r] - c.logs[DELTA_LOG * CHUNK + j]) +
                                    (rest[r] - c.logs[DELTA_LOG_REST * CHUNK + j]);
                const bool seen = j < i + of_scores && j >= begin[r] && i < c.rows;
                s[n][2 * r + e] =
                    seen ? s[n][2 * r + e] * by[r] * c.factor(DELTA_K_NORM, j) * exp_fast(decay)
                         : 0;
            }
            T *to = matrix + tile_at<T, CHUNK>(i, column_of(n, 0) / vec<T>::N) +
                    column_of(n, 0) % vec<T>::N;
            if constexpr (sizeof(T) == 2)
                *reinterpret_cast<uint32_t *>(to) = pack2(s[n][2 * r], s[n][2 * r + 1]);
            else
                *reinterpret_cast<float2 *>(to) = make_float2(s[n][2 * r], s[n][2 * r + 1]);
        }
}

// Write the gradients of the values of eight rows a warp, and return to lane i the sum of row i.
template <typename T, int D>
static __device__ __forceinline__ float value_gradients(T *dv, const delta_head<T, D> &c)
{
    float mine = 0;
    for (int k = 0; k < CHUNK * 32 / NJ_THREADS; k++) {
        const int i = threadIdx.x / 32 * (CHUNK * 32 / NJ_THREADS) + k;
        float sum = 0;
        if (i < c.rows)
#pragma unroll
            for (int d = lane_id(); d < D; d += 32) {
                const float grad = to_f32(c.dr[i * c.width + d]) * c.factor(DELTA_BETA, i);
                dv[(int64_t)i * c.row + d] = from_f32<T>(grad);
                sum = fmaf(grad, to_f32(c.v[(int64_t)i * c.row + d]), sum);
            }
        sum = warp_sum(sum);
        mine = lane_id() == k ? sum : mine;
    }
    return mine;
}

// Return the thread's share of the sum of the products of two states.
template <typename T, int D>
static __device__ __forceinline__ float state_share(const T *state, const T *dstate)
{
    float sum = 0;
    for (int i = threadIdx.x * vec<T>::N; i < D * D; i += NJ_THREADS * vec<T>::N) {
        vec<T> x, y;
        x.load(state + i);
        y.load(dstate + i);
#pragma unroll
        for (int k = 0; k < vec<T>::N; k++)
            sum = fmaf(x.v[k], y.v[k], sum);
    }
    return sum;
}

// Steps and strengths of a head, and where their gradients go.
template <typename T> struct delta_inputs {
    const T *b, *a;
    T *db, *da;
    int ld;
    float rate, bias;
};

// Compute the gradients of steps and strengths, two rows a lane of one warp.
template <typename T, int D>
static __device__ __forceinline__ void
step_gradients(float *da_log, float *ddt_bias, const delta_inputs<T> &in, const delta_dots &dots,
               const delta_head<T, D> &c)
{
    const int lane = lane_id();
    float whole = warp_sum(dots.out[lane] + dots.out[lane + 32]), states = 0;
#pragma unroll
    for (int w = 0; w < NJ_THREADS / 32; w++)
        states += dots.states[w];
    whole += c.factor(DELTA_CARRY, 0) * states;
    float dg[2];
    int begin[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int i = lane + 32 * k;
        begin[k] = c.begin(i);
        dg[k] = dots.queries[i] + dots.left[i] - dots.right[i];
        dg[k] = i < c.rows ? dg[k] + (i == c.rows - 1 ? whole : 0) : 0;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int next = min(lane + step, 31);
            const float y = __shfl_sync(0xffffffffu, dg[k], next);
            const int from = __shfl_sync(0xffffffffu, begin[k], next);
            if (lane + step < 32 && from <= i)
                dg[k] += y;
        }
    }
    const float upper = __shfl_sync(0xffffffffu, dg[1], 0);
    if (__shfl_sync(0xffffffffu, begin[1], 0) <= lane)
        dg[0] += upper;
    float sums[2] = {};
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int i = lane + 32 * k;
        const int64_t at = (int64_t)i * in.ld;
        if (i >= c.rows)
            continue;
        const float step = to_f32(in.a[at]) + in.bias, of_step = -in.rate * dg[k] * sigmoid(step);
        in.da[at] = from_f32<T>(of_step);
        in.db[at] = from_f32<T>((1 - c.factor(DELTA_BETA, i)) * (dots.values[i] + dots.left[i]));
        sums[0] -= dg[k] * in.rate * softplus(step);
        sums[1] += of_step;
    }
    sums[0] = warp_sum(sums[0]);
    sums[1] = warp_sum(sums[1]);
    if (lane == 0) {
        *da_log = sums[0];
        *ddt_bias = sums[1];
    }
}

// Write the gradients of 16 rows of queries or keys, through the division by their lengths.
template <typename T, int D>
static __device__ __forceinline__ void norm_gradients(T *dst, const sums16<D> &grad, const T *x,
                                                      const float *norm, int ld, int at, int rows)
{
    float along[2];
    row_dots<T, D>(along, grad, x, ld, at, rows);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = at + row_of(2 * r);
        if (i >= rows)
            continue;
        const float by = norm[i] * norm[i] * along[r];
#pragma unroll
        for (int n = 0; n < D / 8; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int64_t to = (int64_t)i * ld + column_of(n, e);
                dst[to] = from_f32<T>(grad[n][2 * r + e] - by * to_f32(x[to]));
            }
    }
}

// Sums of the lane's two rows, for the step gradients.
struct delta_sums {
    float left[2], right[2], out[2];
};

static __device__ __forceinline__ void add_pair(float (&x)[2], const float (&y)[2])
{
    x[0] += y[0];
    x[1] += y[1];
}

// Add what the rows of a chunk give each other to the gradients of 16 rows of queries or keys.
template <typename T, int D>
static __device__ __forceinline__ void
add_pairs(sums16<D> &grad, delta_sums &sums, const delta_head<T, D> &c, const T *scores,
          const T *system, const tile<T, D> &keys, const tile<T, D> &queries, int at, bool of_keys)
{
    const float one[2] = {1, 1};
    sums16<D> s;
    left16<T, CHUNK> pairs;
    pairs.rows(of_keys ? system : scores, at);
    clear<D>(s);
    add_by_columns<T, D, CHUNK>(s, pairs, keys);
    add_scaled<D>(grad, s, one);
    row_dots<T, D>(sums.left, s, of_keys ? c.k : c.q, c.row, at, c.rows);
    if (!of_keys)
        return;
    clear<D>(s);
    pairs.columns(system, at);
    add_by_columns<T, D, CHUNK>(s, pairs, keys);
    pairs.columns(scores, at);
    add_by_columns<T, D, CHUNK>(s, pairs, queries);
    add_scaled<D>(grad, s, one);
    row_dots<T, D>(sums.right, s, c.k, c.row, at, c.rows);
}

// Add what goes through the states before and behind the chunk.
template <typename T, int D>
static __device__ __forceinline__ void
add_states(sums16<D> &grad, delta_sums &sums, const delta_head<T, D> &c, const tile<T, D> &state,
           const tile<T, D> &dstate, int at, bool of_keys)
{
    float f[2], sum[2];
    sums16<D> s;
    left16<T, D> left;
    left.load(of_keys ? c.dr : c.dout, c.width, at, c.rows);
    clear<D>(s);
    add_by_columns<T, D, D>(s, left, state);
    c.factors(f, of_keys ? DELTA_K_IN : DELTA_Q_IN, at);
    if (of_keys) {
        f[0] *= -c.factor(DELTA_BETA, at + row_of(0));
        f[1] *= -c.factor(DELTA_BETA, at + row_of(2));
    }
    add_scaled<D>(grad, s, f);
    row_dots<T, D>(sum, s, of_keys ? c.k : c.q, c.row, at, c.rows);
    add_pair(sums.left, sum);
    if (!of_keys)
        return;
    left.load(c.updates, c.width, at, c.rows);
    clear<D>(s);
    add_by_columns<T, D, D>(s, left, dstate);
    c.factors(f, DELTA_K_OUT, at);
    add_scaled<D>(grad, s, f);
    row_dots<T, D>(sums.out, s, c.k, c.row, at, c.rows);
    add_pair(sums.right, sums.out);
}

// Leave the sums of 16 rows to the warp that finishes the head.
static __device__ __forceinline__ void leave_sums(delta_dots &dots, const delta_sums &sums, int at,
                                                  bool of_keys)
{
    if (lane_id() % 4 == 0)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int i = at + row_of(2 * r);
            (of_keys ? dots.left : dots.queries)[i] = sums.left[r];
            if (of_keys) {
                dots.right[i] = sums.right[r];
                dots.out[i] = sums.out[r];
            }
        }
}

// Block (kv, chunk, b) has a chunk of a key head. The lower half of its warps has the gradients of queries, the upper
// half those of keys, 16 rows a warp.
template <typename T, int D>
static __device__ __forceinline__ void
delta_bwd(T *dqkv, T *db, T *da, float *da_log_part, float *ddt_bias_part, const T *dout,
          const T *qkv, const T *updates, const T *states, const T *dr, const T *dstates,
          const float *gates, const float *logs, const T *b, const T *a, const T *a_log,
          const T *dt_bias, const int32_t *doc_start, int B, int S, int H, int K, int ld)
{
    constexpr bool LP = sizeof(T) == 2;
    constexpr int EACH = CHUNK * 32 / NJ_THREADS; // rows of values of a warp
    // Layout: lp: keys, queries, updates, two matrices, then two states in the place of all; float: the matrices. At
    // the end, the sums of a head in the place of what is first.
    extern __shared__ __align__(512) uint4 nj_shared[];
    T *keys = reinterpret_cast<T *>(nj_shared), *queries = keys + CHUNK * D;
    T *changes = queries + CHUNK * D, *scores = LP ? changes + CHUNK * D : keys;
    T *system = scores + CHUNK * CHUNK;
    delta_dots &dots = *reinterpret_cast<delta_dots *>(nj_shared);
    const int kv = blockIdx.x, chunk = blockIdx.y, group = H / K, warp = threadIdx.x / 32;
    const int first = chunk * CHUNK, rows = min(CHUNK, S - first), at = warp % 4 * 16;
    const bool of_keys = warp >= 4;
    const int64_t row = (int64_t)blockIdx.z * S + first, width = (int64_t)H * D;
    const int64_t part = ((int64_t)blockIdx.z * gridDim.y + chunk) * H;
    const delta_heads<D> shared(H, K, kv * group);
    qkv += row * shared.row, dqkv += row * shared.row;
    sums16<D> grad;
    clear<D>(grad);
    for (int h = kv * group; h < (kv + 1) * group; h++) {
        const int64_t of = chunk_at(blockIdx.z, h, chunk, H, S), column = row * width + h * D;
        const int64_t step = row * ld + h;
        const int v = delta_heads<D>(H, K, h).v;
        const delta_head<T, D> c = {qkv + shared.q,
                                    qkv + shared.k,
                                    qkv + v,
                                    dout + column,
                                    dr + column,
                                    updates + column,
                                    states + of * D * D,
                                    dstates + of * D * D,
                                    gates + of * DELTA_FACTORS * CHUNK,
                                    logs + of * DELTA_LOGS * CHUNK,
                                    doc_start ? doc_start + row : nullptr,
                                    width,
                                    shared.row,
                                    first,
                                    rows};
        __syncthreads(); // the sums of the last head have been read
        if constexpr (LP) {
            tile_load<T, D, CHUNK>(keys, c.k, c.row, 0, rows);
            tile_load<T, D, CHUNK>(queries, c.q, c.row, 0, rows);
            tile_load<T, D, CHUNK>(changes, c.updates, (int)width, 0, rows);
        }
        const float of_value = value_gradients<T, D>(dqkv + v, c);
        cp_wait();
        __syncthreads();
        pair_gradients<T, D>(of_keys ? system : scores, c,
                             tile<T, D>::of(changes, c.updates, (int)width, rows), at, !of_keys);
        __syncthreads();
        delta_sums sums = {};
        add_pairs<T, D>(grad, sums, c, scores, system, tile<T, D>::of(keys, c.k, c.row, rows),
                        tile<T, D>::of(queries, c.q, c.row, rows), at, of_keys);
        T *state = keys, *dstate = keys + D * D;
        if constexpr (LP) {
            __syncthreads(); // the tiles of rows have been read
            tile_load<T, D, D>(state, c.state, D, 0, D);
            tile_load<T, D, D>(dstate, c.dstate, D, 0, D);
            cp_wait();
            __syncthreads();
        }
        add_states<T, D>(grad, sums, c, tile<T, D>::of(state, c.state, D, D),
                         tile<T, D>::of(dstate, c.dstate, D, D), at, of_keys);
        const float of_states =
            warp_sum(LP ? state_share<T, D>(state, dstate) : state_share<T, D>(c.state, c.dstate));
        __syncthreads(); // the states, or matrices, have been read
        leave_sums(dots, sums, at, of_keys);
        if (lane_id() == 0)
            dots.states[warp] = of_states;
        if (lane_id() < EACH)
            dots.values[warp * EACH + lane_id()] = of_value;
        __syncthreads();
        if (warp == 0)
            step_gradients<T, D>(da_log_part + part + h, ddt_bias_part + part + h,
                                 {b + step, a + step, db + step, da + step, ld,
                                  exp_fast(to_f32(a_log[h])), to_f32(dt_bias[h])},
                                 dots, c);
    }
    const int of = of_keys ? shared.k : shared.q, norm = of_keys ? DELTA_K_NORM : DELTA_Q_NORM;
    gates += (chunk_at(blockIdx.z, kv * group, chunk, H, S) * DELTA_FACTORS + norm) * CHUNK;
    norm_gradients<T, D>(dqkv + of, grad, qkv + of, gates, shared.row, at, rows);
}
