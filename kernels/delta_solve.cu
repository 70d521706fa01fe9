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

// Compute the decays of a chunk, two rows a lane of one warp.
template <typename T>
static __device__ __forceinline__ void decays(float *logs, delta_chunk &c, const T *b, const T *a,
                                              const int32_t *starts, float rate, float bias,
                                              int first, int rows, int ld)
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
}

// Compute the factors of row i of a chunk.
template <int D>
static __device__ __forceinline__ void factors(float *gates, const delta_chunk &c, int i, int rows)
{
    const int last = rows - 1;
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

// Replace a triangular block of 16 rows, with ones on its diagonal that are not stored, by its inverse. A lane has a
// column; all lanes of a warp call this.
static __device__ __forceinline__ void invert_block(float *block)
{
    const int column = lane_id() % 16;
    float x[16];
#pragma unroll
    for (int i = 0; i < 16; i++) {
        float sum[2] = {};
#pragma unroll
        for (int j = 0; j < i; j++)
            sum[j % 2] = fmaf(block[i * SYSTEM_LD + j], x[j], sum[j % 2]);
        x[i] = (i == column ? 1.0f : 0.0f) - (sum[0] + sum[1]);
    }
    __syncwarp();
    if (lane_id() < 16)
#pragma unroll
        for (int i = 0; i < 16; i++)
            block[i * SYSTEM_LD + column] = x[i];
}

// Return four columns of a row times a matrix, over columns [from, to) of the row.
static __device__ __forceinline__ float4 row_times(const float *row, const float *matrix, int from,
                                                   int to)
{
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
    for (int k = from; k < to; k++) {
        const float x = row[k];
        const float4 y = *reinterpret_cast<const float4 *>(matrix + k * SYSTEM_LD);
        sum.x = fmaf(x, y.x, sum.x);
        sum.y = fmaf(x, y.y, sum.y);
        sum.z = fmaf(x, y.z, sum.z);
        sum.w = fmaf(x, y.w, sum.w);
    }
    return sum;
}

// Replace triangular blocks of 2 N rows, whose two blocks of N rows on the diagonal are inverted already, by their
// inverses: below these belongs -(lower inverse) (what is there) (upper inverse). Above them is room for the product
// of the latter two. A block of 16 rows above the diagonal is zero, whatever is stored there.
template <int N> static __device__ __forceinline__ void join_blocks(float *system)
{
    constexpr int LANES = N / 4, ROWS = NJ_THREADS / LANES, EACH = CHUNK / 2 / ROWS;
    const int column = threadIdx.x % LANES * 4;
    float *block[EACH];
    int row[EACH];
#pragma unroll
    for (int r = 0; r < EACH; r++) {
        const int i = threadIdx.x / LANES + r * ROWS;
        block[r] = system + i / N * 2 * N * (SYSTEM_LD + 1);
        row[r] = i % N;
        *reinterpret_cast<float4 *>(block[r] + row[r] * SYSTEM_LD + N + column) =
            row_times(block[r] + (N + row[r]) * SYSTEM_LD, block[r] + column, column / 16 * 16, N);
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < EACH; r++) {
        float *to = block[r] + (N + row[r]) * SYSTEM_LD;
        const float4 x = row_times(to + N, block[r] + N + column, 0, row[r] / 16 * 16 + 16);
        *reinterpret_cast<float4 *>(to + column) = make_float4(-x.x, -x.y, -x.z, -x.w);
    }
    __syncthreads();
}

// Write the inverse of I + system, which has zeros on its diagonal and above it.
template <typename T>
static __device__ __forceinline__ void invert(T *solve, float *system, int rows)
{
    invert_block(system + threadIdx.x / 32 * 16 * (SYSTEM_LD + 1));
    __syncthreads();
    join_blocks<16>(system);
    join_blocks<32>(system);
#pragma unroll
    for (int n = threadIdx.x; n < CHUNK * CHUNK / vec<T>::N; n += NJ_THREADS) {
        const int i = n * vec<T>::N / CHUNK, j = n * vec<T>::N % CHUNK;
        vec<T> x;
#pragma unroll
        for (int k = 0; k < vec<T>::N; k++)
            x.v[k] = i < rows && j + k <= i ? system[i * SYSTEM_LD + j + k] : 0;
        x.store(solve + n * vec<T>::N);
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
    if (threadIdx.x < 32)
        decays(logs + at * DELTA_LOGS * CHUNK, c, b + begin_row * ld + h, a + begin_row * ld + h,
               doc_start ? doc_start + begin_row : nullptr, exp_fast(to_f32(a_log[h])),
               to_f32(dt_bias[h]), first, rows, ld);
    float squares[2][2];
    k.squares(squares[0]);
    q.squares(squares[1]);
    if (lane_id() % 4 == 0)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            c.k_norm[row + row_of(2 * r)] = rsqrtf(squares[0][r] + DELTA_EPS);
            c.q_norm[row + row_of(2 * r)] = rsqrtf(squares[1][r] + DELTA_EPS);
        }
    cp_wait();
    __syncthreads();
    if (threadIdx.x < CHUNK)
        factors<D>(gates + at * DELTA_FACTORS * CHUNK, c, threadIdx.x, rows);
    const auto right = tile<T, D>::of(keys, qkv + heads.k, heads.row, rows);
    // Compute 16 rows of products of queries or keys with keys, each with its decay and its row's factor.
    const auto products = [&](const left16<T, D> &left, const float(&by)[2], bool own, auto store) {
        sums16<CHUNK> s;
        clear<CHUNK>(s);
        add_by_rows<T, CHUNK, D>(s, left, right);
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int i = row + row_of(2 * r), begin = c.begin[i];
            const float log = c.log[i], rest = c.rest[i];
#pragma unroll
            for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int j = column_of(n, e);
                    const float decay = exp_fast((log - c.log[j]) + (rest - c.rest[j]));
                    const bool seen = j < i + own && j >= begin && i < rows;
                    s[n][2 * r + e] = seen ? s[n][2 * r + e] * decay * c.k_norm[j] * by[r] : 0;
                }
        }
        store(s);
    };
    float of_key[2], of_query[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int i = row + row_of(2 * r);
        of_key[r] = c.k_norm[i] * c.beta[i];
        of_query[r] = c.q_norm[i] * rsqrtf((float)D);
    }
    products(k, of_key, false, [&](const sums16<CHUNK> &s) {
        store_rows<float, CHUNK>(system + row * SYSTEM_LD, SYSTEM_LD, s);
    });
    products(q, of_query, true, [&](const sums16<CHUNK> &s) {
        store_rows<T, CHUNK>(scores + (at * CHUNK + row) * CHUNK, CHUNK, s);
    });
    __syncthreads();
    invert<T>(solve + at * CHUNK * CHUNK, system, rows);
}
