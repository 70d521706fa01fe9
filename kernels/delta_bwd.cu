// SPDX-License-Identifier: Apache-2.0
#include "delta.cuh"

constexpr int PART = 64;                // columns of a state that are computed at a time
constexpr int PIECE = 32;               // columns of pairs that are
constexpr int ROW_WARPS = CHUNK / 16;   // warps of a role
constexpr int FINISHER = 2 * ROW_WARPS; // the warp that computes the gradients of steps

// Each warp has 16 rows of a chunk: of the gradient of queries, or of one of the two parts of that of keys.
enum delta_role {
    OF_QUERIES,
    OF_READ_KEYS,    // as the update of their own row reads what is there
    OF_WRITTEN_KEYS, // as later rows read what they have written
};

// Sums that leave the warps, in shared memory, for one chunk of a value head.
struct delta_dots {
    float pairs[2 * ROW_WARPS]
               [CHUNK];   // by each warp: what the decay into a row does to the pairs across it
    float in[2][CHUNK];   // the query, and the key, with its gradient by the state before the chunk
    float out[CHUNK];     // the key with its gradient by the state behind it
    float updates[CHUNK]; // the update of the state with the gradient of r
    float states[NJ_THREADS / 32]; // the state before the chunk with the gradient of that behind it
};

// Places of a chunk in shared memory, and of a warp's part of it. Layout: lp: keys, queries, updates, two matrices;
// float: the matrices. A part of the state takes the place of the updates, that of its gradient that of the matrices;
// the sums of a head, and gradients at the end, take what is behind the queries.
template <typename T, int D> struct delta_places {
    T *keys, *queries, *updates, *scores, *system;
    enum delta_role role;
    int at; // the warp's first row

    __device__ __forceinline__ explicit delta_places(T *shared)
    {
        const int warp = threadIdx.x / 32;
        keys = shared;
        queries = keys + CHUNK * D;
        updates = sizeof(T) == 2 ? queries + CHUNK * D : keys;
        scores = sizeof(T) == 2 ? updates + CHUNK * D : keys;
        system = scores + CHUNK * CHUNK;
        role = (enum delta_role)(warp / ROW_WARPS);
        at = warp % ROW_WARPS * 16;
    }
    __device__ __forceinline__ delta_dots &dots() const
    {
        return *reinterpret_cast<delta_dots *>(scores);
    }
    // Return the tile of the queries or keys whose gradient the warp has.
    __device__ __forceinline__ const T *own() const { return role == OF_QUERIES ? queries : keys; }
};

// One value head of a chunk, as all warps see it.
template <typename T, int D> struct delta_head {
    const T *q, *k, *dout, *dr, *updates; // the chunk's first row
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
    __device__ __forceinline__ float2 factors(enum delta_factor which, int i) const
    {
        return *reinterpret_cast<const float2 *>(gates + which * CHUNK + i);
    }
    __device__ __forceinline__ float2 log(enum delta_log which, int i) const
    {
        return *reinterpret_cast<const float2 *>(logs + which * CHUNK + i);
    }
};

// Sums of a warp for the gradients of steps. `pairs` are those of two columns of the lane, others of the lane's two
// rows.
struct delta_sums {
    float pairs[CHUNK / PIECE], updates[2], states[2];
};

// Return the sum of x over the lanes of a quad that are below this one.
static __device__ __forceinline__ float quad_before(float x)
{
    const int lane = lane_id(), t = lane % 4;
    const float below = __shfl_sync(0xffffffffu, x, max(lane - 1, 0)), y = t > 0 ? below : 0;
    const float further = __shfl_sync(0xffffffffu, x + y, max(lane - 2, 0));
    return y + (t > 1 ? further : 0);
}

// Return the sum of v[g], for g = lane / 4, over the eight lanes of a column.
static __device__ __forceinline__ float column_share(float (&v)[8])
{
#pragma unroll
    for (int half = 4; half > 0; half /= 2) {
        const bool upper = lane_id() & 4 * half;
#pragma unroll
        for (int k = 0; k < half; k++) {
            const float other = upper ? v[k] : v[k + half], mine = upper ? v[k + half] : v[k];
            v[k] = mine + __shfl_xor_sync(0xffffffffu, other, 4 * half);
        }
    }
    return v[0];
}

// Return, for one column a lane, the sum over the warp's rows from that of the column on of what is left of it in them.
// `left` is what is left of the piece, for the lane's two rows.
static __device__ __forceinline__ float sum_across(const sums16<PIECE> &c, float (&left)[2], int at,
                                                   int first)
{
    float v[PIECE / 4] = {};
#pragma unroll
    for (int n = 0; n < PIECE / 8; n++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const float x[2] = {c[n][2 * r], c[n][2 * r + 1]}, own = x[0] + x[1];
            const float before = quad_before(own);
            float sum = left[r] + before;
#pragma unroll
            for (int e = 0; e < 2; e++) {
                v[2 * n + e] += first + column_of(n, e) <= at + row_of(2 * r) ? sum : 0;
                sum += x[e];
            }
            left[r] += __shfl_sync(0xffffffffu, before + own, lane_id() | 3);
        }
    return column_share(v);
}

// Compute, for 16 rows i of the chunk, the gradients of the scores, or of the system, times the decay from row j and
// the reciprocal lengths of both rows.
template <typename T, int D>
static __device__ __forceinline__ void
pair_gradients(T *matrix, delta_sums &sums, const delta_head<T, D> &c, const left16<T, D> &left,
               const tile<T, D> &updates, const left16_shared<T, D> &rows, const tile<T, D> &keys,
               int at, bool of_scores)
{
    float by[2], log[2], rest[2], before[2] = {};
    int begin[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = at + row_of(2 * r);
        by[r] = of_scores ? c.factor(DELTA_Q_NORM, i) * rsqrtf((float)D)
                          : -c.factor(DELTA_BETA, i) * c.factor(DELTA_K_NORM, i);
        log[r] = c.logs[DELTA_LOG * CHUNK + i];
        rest[r] = c.logs[DELTA_LOG_REST * CHUNK + i];
        begin[r] = i < c.rows ? c.begin(i) : CHUNK;
    }
#pragma unroll 1
    for (int first = 0; first < CHUNK; first += PIECE) {
        sums16<PIECE> s, x;
        clear<PIECE>(s);
        clear<PIECE>(x);
        if (first < at + 16) {
            add_by_rows<T, PIECE, D>(s, left, updates.below(first));
            add_by_rows<T, PIECE, D>(x, rows, keys.below(first));
        }
#pragma unroll
        for (int n = 0; n < PIECE / 8; n++) {
            const int j = first + column_of(n, 0);
            const float2 to = c.log(DELTA_LOG, j), to_rest = c.log(DELTA_LOG_REST, j);
            const float2 norm = c.factors(DELTA_K_NORM, j);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int i = at + row_of(2 * r);
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float &grad = s[n][2 * r + e];
                    const float decay =
                        (log[r] - (e ? to.y : to.x)) + (rest[r] - (e ? to_rest.y : to_rest.x));
                    if (i == j + e)
                        sums.updates[r] = grad;
                    grad = j + e < i + of_scores && j + e >= begin[r]
                               ? grad * by[r] * (e ? norm.y : norm.x) * exp_fast(decay)
                               : 0;
                    x[n][2 * r + e] *= grad;
                }
                T *to = matrix + tile_at<T, CHUNK>(i, j / vec<T>::N) + j % vec<T>::N;
                if constexpr (sizeof(T) == 2)
                    *reinterpret_cast<uint32_t *>(to) = pack2(s[n][2 * r], s[n][2 * r + 1]);
                else
                    *reinterpret_cast<float2 *>(to) = make_float2(s[n][2 * r], s[n][2 * r + 1]);
            }
        }
        sums.pairs[0] = sums.pairs[1];
        sums.pairs[1] = sum_across(x, before, at, first);
    }
    sums.updates[0] = quad_sum(sums.updates[0]);
    sums.updates[1] = quad_sum(sums.updates[1]);
}

// Write the gradients of the values of a chunk.
template <typename T, int D>
static __device__ __forceinline__ void value_gradients(T *dv, const delta_head<T, D> &c)
{
    constexpr int N = vec<T>::N, EACH = D / N;
    for (int i = threadIdx.x / EACH; i < c.rows; i += NJ_THREADS / EACH) {
        const int column = threadIdx.x % EACH * N;
        vec<T> x;
        x.load(c.dr + i * c.width + column);
#pragma unroll
        for (int k = 0; k < N; k++)
            x.v[k] *= c.factor(DELTA_BETA, i);
        x.store(dv + (int64_t)i * c.row + column);
    }
}

// Return the thread's share of the sum of the products of two states, of the first PART columns. Rows are `ld` elements
// apart.
template <typename T, int D>
static __device__ __forceinline__ float state_share(const T *state, const T *dstate, int ld)
{
    float sum = 0;
    for (int i = threadIdx.x * vec<T>::N; i < D * PART; i += NJ_THREADS * vec<T>::N) {
        const int at = i / PART * ld + i % PART;
        vec<T> x, y;
        x.load(state + at);
        y.load(dstate + at);
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

// Compute the gradients of the logarithms of decays, each the sum over all that the decay stands in: pairs of rows
// across it, rows behind it with the state before the chunk, rows before it with the state behind the chunk, and both
// states. No two of these are parts of one number, so that their errors are relative to what is left.
static __device__ __forceinline__ void decay_gradients(float (&dg)[2], const delta_dots &dots,
                                                       float carry)
{
    const int lane = lane_id();
    float states = 0, in[2], out[2];
#pragma unroll
    for (int w = 0; w < NJ_THREADS / 32; w++)
        states += dots.states[w];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int i = lane + 32 * k;
        in[k] = dots.in[0][i] + dots.in[1][i];
        out[k] = dots.out[i];
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const float x = __shfl_sync(0xffffffffu, in[k], min(lane + step, 31));
            const float y = __shfl_sync(0xffffffffu, out[k], max(lane - step, 0));
            in[k] += lane + step < 32 ? x : 0;
            out[k] += lane >= step ? y : 0;
        }
        dg[k] = carry * states;
#pragma unroll
        for (int w = 0; w < 2 * ROW_WARPS; w++)
            dg[k] += dots.pairs[w][i];
    }
    const float upper = __shfl_sync(0xffffffffu, in[1], 0);
    const float lower = __shfl_sync(0xffffffffu, out[0], 31);
    const float before[2] = {__shfl_sync(0xffffffffu, out[0], max(lane - 1, 0)),
                             __shfl_sync(0xffffffffu, out[1], max(lane - 1, 0))};
    dg[0] += in[0] + upper + (lane > 0 ? before[0] : 0);
    dg[1] += in[1] + lower + (lane > 0 ? before[1] : 0);
}

// Compute the gradients of steps and strengths, two rows a lane of one warp.
template <typename T, int D>
static __device__ __forceinline__ void
step_gradients(float *da_log, float *ddt_bias, const delta_inputs<T> &in, const delta_dots &dots,
               const delta_head<T, D> &c)
{
    float dg[2], sums[2] = {};
    decay_gradients(dg, dots, c.factor(DELTA_CARRY, 0));
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int i = lane_id() + 32 * k;
        const int64_t at = (int64_t)i * in.ld;
        if (i >= c.rows)
            continue;
        const float step = to_f32(in.a[at]) + in.bias, of_step = -in.rate * dg[k] * sigmoid(step);
        in.da[at] = from_f32<T>(of_step);
        in.db[at] = from_f32<T>((1 - c.factor(DELTA_BETA, i)) * dots.updates[i]);
        sums[0] -= dg[k] * in.rate * softplus(step);
        sums[1] += of_step;
    }
    sums[0] = warp_sum(sums[0]);
    sums[1] = warp_sum(sums[1]);
    if (lane_id() == 0) {
        *da_log = sums[0];
        *ddt_bias = sums[1];
    }
}

// Return in `sum` the sums of products of the lane's two rows.
static __device__ __forceinline__ void row_dots(float (&sum)[2], const sums16<PART> &x,
                                                const sums16<PART> &y)
{
    sum[0] = sum[1] = 0;
#pragma unroll
    for (int n = 0; n < PART / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            sum[e / 2] = fmaf(x[n][e], y[n][e], sum[e / 2]);
    sum[0] = quad_sum(sum[0]);
    sum[1] = quad_sum(sum[1]);
}

// Write the gradients of 16 rows of queries or keys, through the division by their lengths. `shared` (lp) are the rows
// of the chunk.
template <typename T, int D>
static __device__ __forceinline__ void norm_gradients(T *dst, sums16<D> &grad, const T *shared,
                                                      const T *x, const float *norm, int ld, int at,
                                                      int rows)
{
    float by[2] = {};
#pragma unroll
    for (int pass = 0; pass < 2; pass++)
#pragma unroll
        for (int part = 0; part < D / PART; part++) {
            sums16<PART> own, of;
            left16_shared<T, PART, D>(shared, x, ld, at, PART * part, rows).values(own);
            float sum[2];
#pragma unroll
            for (int n = 0; n < PART / 8; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    float &g = grad[part * (PART / 8) + n][e];
                    of[n][e] = g;
                    g -= pass == 1 ? by[e / 2] * own[n][e] : 0;
                }
            if (pass == 1)
                continue;
            row_dots(sum, of, own);
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const float f = norm[min(at + row_of(2 * r), rows - 1)];
                by[r] = fmaf(f * f, sum[r], by[r]);
            }
        }
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = at + row_of(2 * r);
        if (i < rows)
#pragma unroll
            for (int n = 0; n < D / 8; n++) {
                T *to = dst + (int64_t)i * ld + column_of(n, 0);
                if constexpr (sizeof(T) == 2)
                    *reinterpret_cast<uint32_t *>(to) = pack2(grad[n][2 * r], grad[n][2 * r + 1]);
                else
                    *reinterpret_cast<float2 *>(to) =
                        make_float2(grad[n][2 * r], grad[n][2 * r + 1]);
            }
    }
}

// Add what the rows of a chunk give each other to 16 rows of a gradient.
template <typename T, int D>
static __device__ __forceinline__ void add_pairs(sums16<D> &grad, const T *scores, const T *system,
                                                 const tile<T, D> &keys, const tile<T, D> &queries,
                                                 int at, enum delta_role role)
{
    left16<T, CHUNK> pairs;
    if (role == OF_WRITTEN_KEYS) {
        pairs.columns(scores, at);
        add_by_columns<T, D, CHUNK>(grad, pairs, queries);
        pairs.columns(system, at);
    } else {
        pairs.rows(role == OF_QUERIES ? scores : system, at);
    }
    add_by_columns<T, D, CHUNK>(grad, pairs, keys);
}

// Add what goes through PART columns of the state before the chunk, or of that behind it, to 16 rows of a gradient. f
// are the factors of the lane's two rows; x are the queries, or keys.
template <typename T, int D>
static __device__ __forceinline__ void
add_state(sums16<D> &grad, delta_sums &sums, const left16<T, D> &left, const tile<T, PART> &state,
          const left16_shared<T, PART, D> &x, const float (&f)[2], int part)
{
    sums16<PART> s, own;
    float sum[2];
    clear<PART>(s);
    add_by_columns<T, PART, D>(s, left, state);
    x.values(own);
    row_dots(sum, s, own);
#pragma unroll
    for (int r = 0; r < 2; r++)
        sums.states[r] = fmaf(f[r], sum[r], sums.states[r]);
#pragma unroll
    for (int n = 0; n < PART / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            float &to = grad[part * (PART / 8) + n][e];
            to = fmaf(f[e / 2], s[n][e], to);
        }
}

// Return the factors of what a role has through a state, for the lane's two rows.
template <typename T, int D>
static __device__ __forceinline__ void state_factors(float (&f)[2], const delta_head<T, D> &c,
                                                     int at, enum delta_role role)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = at + row_of(2 * r);
        f[r] = role == OF_QUERIES     ? c.factor(DELTA_Q_IN, i)
               : role == OF_READ_KEYS ? -c.factor(DELTA_K_IN, i) * c.factor(DELTA_BETA, i)
                                      : c.factor(DELTA_K_OUT, i);
    }
}

// Add what goes through both states to 16 rows of a gradient. Return the thread's share of their product.
template <typename T, int D>
static __device__ __forceinline__ float
add_states(sums16<D> &grad, delta_sums &sums, const delta_head<T, D> &c, const left16<T, D> &left,
           const delta_places<T, D> &w)
{
    constexpr bool LP = sizeof(T) == 2;
    float f[2], share = 0;
    state_factors<T, D>(f, c, w.at, w.role);
#pragma unroll
    for (int p = 0; p < D / PART; p++) {
        const T *state = LP ? w.updates : c.state + PART * p;
        const T *dstate = LP ? w.scores : c.dstate + PART * p;
        if constexpr (LP) {
            __syncthreads(); // the matrices, or the last part, have been read
            if (p > 0)
                tile_load<T, PART, D>(w.updates, c.state + PART * p, D, 0, D);
            tile_load<T, PART, D>(w.scores, c.dstate + PART * p, D, 0, D);
            cp_wait();
            __syncthreads();
        }
        const T *through = w.role == OF_WRITTEN_KEYS ? dstate : state;
        const T *own = w.role == OF_QUERIES ? c.q : c.k;
        add_state<T, D>(grad, sums, left, tile<T, PART>::of(through, through, D, D),
                        left16_shared<T, PART, D>(w.own(), own, c.row, w.at, PART * p, c.rows), f,
                        p);
        share += state_share<T, D>(state, dstate, LP ? PART : D);
    }
    return share;
}

// Leave the sums of 16 rows to the warp that finishes the head.
static __device__ __forceinline__ void leave_sums(delta_dots &dots, const delta_sums &sums, int at,
                                                  enum delta_role role)
{
    const int lane = lane_id(), g = lane / 4;
    if (role != OF_WRITTEN_KEYS)
#pragma unroll
        for (int piece = 0; piece < CHUNK / PIECE; piece++)
            dots.pairs[threadIdx.x / 32][PIECE * piece + column_of(g / 2, g)] = sums.pairs[piece];
    if (lane % 4 == 0)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int i = at + row_of(2 * r);
            (role == OF_WRITTEN_KEYS ? dots.out : dots.in[role])[i] = sums.states[r];
            if (role == OF_READ_KEYS)
                dots.updates[i] = sums.updates[r];
        }
}

// Add the gradients of one role to those of another. All threads call this.
template <int D>
static __device__ __forceinline__ void add_role(sums16<D> &grad, float *shared,
                                                enum delta_role from, enum delta_role to)
{
    const int warp = threadIdx.x / 32, role = warp / ROW_WARPS;
    float4 *place = reinterpret_cast<float4 *>(shared) + warp % ROW_WARPS * 32 * D / 8 + lane_id();
    if (role == from)
#pragma unroll
        for (int n = 0; n < D / 8; n++)
            place[32 * n] = make_float4(grad[n][0], grad[n][1], grad[n][2], grad[n][3]);
    __syncthreads();
    if (role == to)
#pragma unroll
        for (int n = 0; n < D / 8; n++) {
            const float4 x = place[32 * n];
            grad[n][0] += x.x, grad[n][1] += x.y, grad[n][2] += x.z, grad[n][3] += x.w;
        }
}

// Block (kv, chunk, b) has a chunk of a key head. A third of its warps has each role, 16 rows a warp.
template <typename T, int D>
static __device__ __forceinline__ void
delta_bwd(T *dqkv, T *db, T *da, float *da_log_part, float *ddt_bias_part, const T *dout,
          const T *qkv, const T *updates, const T *states, const T *dr, const T *dstates,
          const float *gates, const float *logs, const T *b, const T *a, const T *a_log,
          const T *dt_bias, const int32_t *doc_start, int B, int S, int H, int K, int ld)
{
    constexpr bool LP = sizeof(T) == 2;
    extern __shared__ __align__(512) uint4 nj_shared[];
    const delta_places<T, D> w(reinterpret_cast<T *>(nj_shared));
    const int kv = blockIdx.x, chunk = blockIdx.y, group = H / K, warp = threadIdx.x / 32;
    const int first = chunk * CHUNK, rows = min(CHUNK, S - first);
    const int64_t row = (int64_t)blockIdx.z * S + first, width = (int64_t)H * D;
    const int64_t part = ((int64_t)blockIdx.z * gridDim.y + chunk) * H;
    const delta_heads<D> shared(H, K, kv * group);
    qkv += row * shared.row, dqkv += row * shared.row;
    const T *q = qkv + shared.q, *k = qkv + shared.k, *own = w.role == OF_QUERIES ? q : k;
    if constexpr (LP) {
        tile_load<T, D, CHUNK>(w.keys, k, shared.row, 0, rows);
        tile_load<T, D, CHUNK>(w.queries, q, shared.row, 0, rows);
    }
    const auto right_keys = tile<T, D>::of(w.keys, k, shared.row, rows);
    const auto right_queries = tile<T, D>::of(w.queries, q, shared.row, rows);
    const auto fetch = [&](int h) {
        if constexpr (LP)
            tile_load<T, D, CHUNK>(w.updates, updates + row * width + h * D, (int)width, 0, rows);
    };
    fetch(kv * group);
    sums16<D> grad;
    clear<D>(grad);
    for (int h = kv * group; h < (kv + 1) * group; h++) {
        const int64_t of = chunk_at(blockIdx.z, h, chunk, H, S), column = row * width + h * D;
        const int64_t step = row * ld + h;
        const delta_head<T, D> c = {q,
                                    k,
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
        left16<T, D> left;
        left.load(w.role == OF_QUERIES     ? c.dout
                  : w.role == OF_READ_KEYS ? c.dr
                                           : c.updates,
                  width, w.at, rows);
        value_gradients<T, D>(dqkv + delta_heads<D>(H, K, h).v, c);
        cp_wait();
        __syncthreads(); // the updates are here, and the sums of the last head have been read
        delta_sums sums = {};
        if (w.role != OF_WRITTEN_KEYS)
            pair_gradients<T, D>(w.role == OF_QUERIES ? w.scores : w.system, sums, c, left,
                                 tile<T, D>::of(w.updates, c.updates, (int)width, rows),
                                 left16_shared<T, D>(w.own(), own, shared.row, w.at, 0, rows),
                                 right_keys, w.at, w.role == OF_QUERIES);
        __syncthreads(); // the updates have been read
        if constexpr (LP)
            tile_load<T, PART, D>(w.updates, c.state, D, 0, D);
        add_pairs<T, D>(grad, w.scores, w.system, right_keys, right_queries, w.at, w.role);
        const float of_states = warp_sum(add_states<T, D>(grad, sums, c, left, w));
        __syncthreads(); // the states, or matrices, have been read
        if (h + 1 < (kv + 1) * group)
            fetch(h + 1);
        leave_sums(w.dots(), sums, w.at, w.role);
        if (lane_id() == 0)
            w.dots().states[warp] = of_states;
        __syncthreads();
        if (warp == FINISHER)
            step_gradients<T, D>(da_log_part + part + h, ddt_bias_part + part + h,
                                 {b + step, a + step, db + step, da + step, ld,
                                  exp_fast(to_f32(a_log[h])), to_f32(dt_bias[h])},
                                 w.dots(), c);
    }
    __syncthreads(); // the sums have been read
    add_role<D>(grad, reinterpret_cast<float *>(w.updates), OF_READ_KEYS, OF_WRITTEN_KEYS);
    if (w.role == OF_READ_KEYS)
        return;
    const int to = w.role == OF_QUERIES ? shared.q : shared.k;
    const int norm = w.role == OF_QUERIES ? DELTA_Q_NORM : DELTA_K_NORM;
    gates += (chunk_at(blockIdx.z, kv * group, chunk, H, S) * DELTA_FACTORS + norm) * CHUNK;
    norm_gradients<T, D>(dqkv + to, grad, w.own(), own, gates, shared.row, w.at, rows);
}
