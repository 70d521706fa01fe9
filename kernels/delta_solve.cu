// SPDX-License-Identifier: Apache-2.0
#include "delta.cuh"

constexpr int SYSTEM_LD = CHUNK + 4; // elements of a row of the system

// The rows of a chunk, as all warps know them.
struct delta_chunk {
    float beta[CHUNK], k_norm[CHUNK], q_norm[CHUNK], log[CHUNK], rest[CHUNK];
    int begin
        [CHUNK]; // first row of each row's document, counted from the chunk's first; may be negative

    // Return the decay from row j to row i of a document.
    __device__ __forceinline__ float decay(int i, int j) const
    {
        return exp_fast((log[i] - log[j]) + (rest[i] - rest[j]));
    }
};

// Return the sum over the rows of a document up to the lane's, for a row a lane. The sums are those of double
// precision, so that differences of large logarithms keep their digits. `begin` is the lane of the first row.
static __device__ __forceinline__ double sum_of_document(double x, int begin)
{
    const int lane = lane_id();
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const double y = __shfl_sync(0xffffffffu, x, max(lane - step, 0));
        if (lane - step >= max(begin, 0))
            x += y;
    }
    return x;
}

// Compute the factors of a chunk, two rows a lane of one warp.
template <typename T, int D>
static __device__ __forceinline__ void factors(float *gates, float *logs, delta_chunk &c,
                                               const T *b, const T *a, const int32_t *starts,
                                               float rate, float bias, int first, int rows, int ld)
{
    const int lane = lane_id();
    double sum[2];
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int i = lane + 32 * k;
        c.begin[i] = (starts ? starts[min(i, rows - 1)] : 0) - first;
        c.beta[i] = i < rows ? sigmoid(to_f32(b[(int64_t)i * ld])) : 0;
        const float g = i < rows ? -rate * softplus(to_f32(a[(int64_t)i * ld]) + bias) : 0;
        sum[k] = sum_of_document(g, c.begin[i] - 32 * k);
    }
    const double lower = __shfl_sync(0xffffffffu, sum[0], 31);
    sum[1] += c.begin[lane + 32] < 32 ? lower : 0;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int i = lane + 32 * k;
        c.log[i] = (float)sum[k];
        c.rest[i] = (float)(sum[k] - c.log[i]);
        logs[DELTA_LOG * CHUNK + i] = i < rows ? c.log[i] : 0;
        logs[DELTA_LOG_REST * CHUNK + i] = i < rows ? c.rest[i] : 0;
    }
    __syncwarp();
    const int last = rows - 1;
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int i = lane + 32 * k;
        const bool live = i < rows;
        const float in = live && c.begin[i] < 0 ? exp_fast(c.log[i]) : 0;
        const float out = live && i >= c.begin[last] ? c.decay(last, i) : 0;
        gates[DELTA_BETA * CHUNK + i] = c.beta[i];
        gates[DELTA_K_IN * CHUNK + i] = in * c.k_norm[i];
        gates[DELTA_Q_IN * CHUNK + i] = in * c.q_norm[i] * rsqrtf((float)D);
        gates[DELTA_K_OUT * CHUNK + i] = out * c.k_norm[i];
        gates[DELTA_K_NORM * CHUNK + i] = live ? c.k_norm[i] : 0;
        gates[DELTA_Q_NORM * CHUNK + i] = live ? c.q_norm[i] : 0;
        gates[DELTA_CARRY * CHUNK + i] = live && c.begin[last] < 0 ? exp_fast(c.log[last]) : 0;
    }
}

// Compute one column of the inverse of I + system, which has zeros on its diagonal and above it.
template <typename T>
static __device__ __forceinline__ void invert_column(T *solve, const float *system, int column,
                                                     int rows)
{
    float x[CHUNK];
#pragma unroll
    for (int i = 0; i < CHUNK; i++) {
        float sum[4] = {};
#pragma unroll
        for (int j = 0; j < i; j += 4) {
            const float4 s = *reinterpret_cast<const float4 *>(system + i * SYSTEM_LD + j);
            sum[0] = fmaf(s.x, x[j], sum[0]);
            if (j + 1 < i)
                sum[1] = fmaf(s.y, x[j + 1], sum[1]);
            if (j + 2 < i)
                sum[2] = fmaf(s.z, x[j + 2], sum[2]);
            if (j + 3 < i)
                sum[3] = fmaf(s.w, x[j + 3], sum[3]);
        }
        x[i] = (i == column ? 1.0f : 0.0f) - ((sum[0] + sum[1]) + (sum[2] + sum[3]));
        solve[i * CHUNK + column] = from_f32<T>(i < rows ? x[i] : 0);
    }
}

// Block (h, chunk, b) has a chunk of a value head, a warp 16 of its rows.
template <typename T, int D>
static __device__ __forceinline__ void
delta_solve(float *gates, float *logs, T *solve, T *scores, const T *qkv, const T *b, const T *a,
            const T *a_log, const T *dt_bias, const int32_t *doc_start, int B, int S, int H, int K,
            int ld)
{
    extern __shared__ __align__(512) uint4 nj_shared[]; // layout: keys (lp), system
    __shared__ delta_chunk c;
    T *keys = reinterpret_cast<T *>(nj_shared);
    float *system = reinterpret_cast<float *>(nj_shared) + (sizeof(T) == 2 ? CHUNK * D / 2 : 0);
    const int h = blockIdx.x, first = blockIdx.y * CHUNK, rows = min(CHUNK, S - first);
    const int row = threadIdx.x / 32 * 16;
    const int64_t at = chunk_at(blockIdx.z, h, blockIdx.y, H, S);
    const int64_t begin_row = (int64_t)blockIdx.z * S + first;
    const delta_heads<D> heads(H, K, h);
    qkv += begin_row * heads.row;
    if constexpr (sizeof(T) == 2)
        tile_load<T, D, CHUNK>(keys, qkv + heads.k, heads.row, 0, rows);
    left16<T, D> q, k;
    q.load(qkv + heads.q, heads.row, row, rows);
    k.load(qkv + heads.k, heads.row, row, rows);
    float squares[2][2];
    k.squares(squares[0]);
    q.squares(squares[1]);
    if (lane_id() % 4 == 0)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            c.k_norm[row + row_of(2 * r)] = rsqrtf(squares[0][r] + DELTA_EPS);
            c.q_norm[row + row_of(2 * r)] = rsqrtf(squares[1][r] + DELTA_EPS);
        }
    __syncthreads();
    if (threadIdx.x < 32)
        factors<T, D>(gates + at * DELTA_FACTORS * CHUNK, logs + at * DELTA_LOGS * CHUNK, c,
                      b + begin_row * ld + h, a + begin_row * ld + h,
                      doc_start ? doc_start + begin_row : nullptr, exp_fast(to_f32(a_log[h])),
                      to_f32(dt_bias[h]), first, rows, ld);
    cp_wait();
    __syncthreads();
    const auto right = tile<T, D>::of(keys, qkv + heads.k, heads.row, rows);
    int begin[2];
#pragma unroll
    for (int r = 0; r < 2; r++)
        begin[r] = c.begin[row + row_of(2 * r)];
    // Compute 16 rows of products of queries or keys with keys, each with its decay.
    const auto products = [&](const left16<T, D> &left, auto store, auto by) {
        sums16<CHUNK> s;
        clear<CHUNK>(s);
        add_by_rows<T, CHUNK, D>(s, left, right);
#pragma unroll
        for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int r = e / 2, i = row + row_of(e), j = column_of(n, e);
                const bool seen = j <= i && j >= begin[r] && i < rows;
                s[n][e] *= seen ? c.decay(i, j) * c.k_norm[j] * by(i, j) : 0;
            }
        store(s);
    };
    products(
        k,
        [&](const sums16<CHUNK> &s) {
            store_rows<float, CHUNK>(system + row * SYSTEM_LD, SYSTEM_LD, s);
        },
        [&](int i, int j) { return j < i ? c.k_norm[i] * c.beta[i] : 0; });
    products(
        q,
        [&](const sums16<CHUNK> &s) {
            store_rows<T, CHUNK>(scores + (at * CHUNK + row) * CHUNK, CHUNK, s);
        },
        [&](int i, int j) { return c.q_norm[i] * rsqrtf((float)D); });
    __syncthreads();
    if (threadIdx.x < CHUNK)
        invert_column(solve + at * CHUNK * CHUNK, system, threadIdx.x, rows);
}
