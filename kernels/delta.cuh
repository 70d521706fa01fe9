// SPDX-License-Identifier: Apache-2.0
//
// delta.cuh: matrix products of the gated delta rule over a chunk of 64 rows. A warp owns 16 rows of each product; with
// g = lane/4, t = lane%4 a lane holds columns 8n+2t, 8n+2t+1 of row g in c[n][0..1], and of row g+8 in c[n][2..3], in
// both element types:
//
//    left16  16 rows, K wide: the left factor (lp: registers, as mma16816 takes it; float: rows in memory)
//    tile    the right factor (lp: rows of W elements in shared memory; float: rows in global memory)
//
// lp runs on tensor cores, with left factors rounded to lp; float runs on plain multiply-adds.
#ifndef NOJIT_DELTA_CUH
#define NOJIT_DELTA_CUH

#include "base/delta.h"
#include "mma.cuh"

constexpr int CHUNK = DELTA_CHUNK;

template <int N> using sums16 = float[N / 8][4];

template <int N> static __device__ __forceinline__ void clear(sums16<N> &c)
{
#pragma unroll
    for (int n = 0; n < N / 8; n++)
        c[n][0] = c[n][1] = c[n][2] = c[n][3] = 0;
}

// Return the column that element e of c[n] belongs to, and the row, counted from the warp's first.
static __device__ __forceinline__ int column_of(int n, int e)
{
    return 8 * n + lane_id() % 4 * 2 + e % 2;
}
static __device__ __forceinline__ int row_of(int e)
{
    return lane_id() / 4 + e / 2 * 8;
}

// The rows of a right factor. Those from `limit` on repeat the last one (float), or are zero (lp).
template <typename T, int W> struct tile {
    const T *p;

    __device__ __forceinline__ static tile of(const T *shared, const T *, int, int)
    {
        return {shared};
    }
    __device__ __forceinline__ tile below(int rows) const { return {p + rows * W}; }
};
template <int W> struct tile<float, W> {
    const float *p;
    int ld, limit;

    __device__ __forceinline__ static tile of(const float *, const float *global, int ld, int limit)
    {
        return {global, ld, limit};
    }
    __device__ __forceinline__ tile below(int rows) const
    {
        return {p + (int64_t)rows * ld, ld, limit - rows};
    }
    __device__ __forceinline__ const float *row(int i) const
    {
        return p + (int64_t)min(i, limit - 1) * ld;
    }
};

// Rows beyond the limit repeat the last one.
template <typename T, int K> struct left16 {
    uint32_t a[K / 16][4];

    __device__ __forceinline__ void load(const T *src, int64_t ld, int row, int limit)
    {
        const int t = lane_id() % 4;
        const T *p[2];
#pragma unroll
        for (int r = 0; r < 2; r++)
            p[r] = src + min(row + lane_id() / 4 + 8 * r, limit - 1) * ld + 2 * t;
#pragma unroll
        for (int k = 0; k < K / 16; k++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                a[k][i] = *reinterpret_cast<const uint32_t *>(p[i % 2] + 16 * k + i / 2 * 8);
    }
    __device__ __forceinline__ void get(uint32_t (&out)[4], int k) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
            out[i] = a[k][i];
    }
    // Take 16 rows of products, rounded to T.
    __device__ __forceinline__ void take(const sums16<K> &c, float *)
    {
#pragma unroll
        for (int k = 0; k < K / 16; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const float(&x)[4] = c[2 * k + i / 2];
                a[k][i] = pack2(x[i % 2 * 2], x[i % 2 * 2 + 1]);
            }
    }
    // Take rows of a tile in shared memory, or columns of it.
    __device__ __forceinline__ void rows(const T *shared, int row)
    {
        const uint32_t p = tile_row<T, K>(shared, row + (lane_id() & 15), lane_id() >> 4);
#pragma unroll
        for (int k = 0; k < K / 16; k++)
            ldmatrix4(a[k], p ^ 32 * k);
    }
    __device__ __forceinline__ void columns(const T *shared, int column)
    {
        const int lane = lane_id();
#pragma unroll
        for (int k = 0; k < K / 16; k++)
            ldmatrix4_trans(a[k], shared_address(shared + tile_at<T, CHUNK>(
                                                              16 * k + (lane & 7) + (lane >> 4) * 8,
                                                              column / 8 + (lane >> 3 & 1))));
    }
    // Return the rows as sums of 16 rows and K columns have their elements.
    __device__ __forceinline__ void values(sums16<K> &c) const
    {
#pragma unroll
        for (int k = 0; k < K / 16; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float x[2];
                widen(x, a[k][i], T());
                c[2 * k + i / 2][i % 2 * 2] = x[0];
                c[2 * k + i / 2][i % 2 * 2 + 1] = x[1];
            }
    }
    // Compute the squared lengths of the lane's two rows.
    __device__ __forceinline__ void squares(float (&sum)[2]) const
    {
        sum[0] = sum[1] = 0;
#pragma unroll
        for (int k = 0; k < K / 16; k++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float x[2];
                widen(x, a[k][i], T());
                sum[i % 2] += x[0] * x[0] + x[1] * x[1];
            }
        sum[0] = quad_sum(sum[0]);
        sum[1] = quad_sum(sum[1]);
    }
};

template <int K> struct left16<float, K> {
    const float *p[2];
    int step; // elements from a column to the next

    __device__ __forceinline__ void load(const float *src, int64_t ld, int row, int limit)
    {
#pragma unroll
        for (int r = 0; r < 2; r++)
            p[r] = src + min(row + lane_id() / 4 + 8 * r, limit - 1) * ld;
        step = 1;
    }
    // The rows go to `scratch`, 16 K floats of the warp.
    __device__ __forceinline__ void take(const sums16<K> &c, float *scratch)
    {
        __syncwarp();
#pragma unroll
        for (int n = 0; n < K / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                scratch[row_of(e) * K + column_of(n, e)] = c[n][e];
        __syncwarp();
        load(scratch, K, 0, 16);
    }
    __device__ __forceinline__ void rows(const float *shared, int row)
    {
        load(shared, CHUNK, row, CHUNK);
    }
    __device__ __forceinline__ void columns(const float *shared, int column)
    {
        load(shared, 1, column, CHUNK);
        step = CHUNK;
    }
    __device__ __forceinline__ void squares(float (&sum)[2]) const
    {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float x = 0;
            for (int k = lane_id() % 4; k < K; k += 4)
                x = fmaf(p[r][k], p[r][k], x);
            sum[r] = quad_sum(x);
        }
    }
};

// 16 rows, K wide, of an array or (lp) of a tile of W columns that has the same rows, where registers are scarce.
template <typename T, int K, int W = K> struct left16_shared {
    uint32_t p;

    __device__ __forceinline__ left16_shared(const T *shared, const T *, int, int row, int column,
                                             int)
    {
        const int lane = lane_id();
        p = tile_row<T, W>(shared, row + (lane & 15), lane >> 4) ^ 2 * column;
    }
    __device__ __forceinline__ void get(uint32_t (&out)[4], int k) const
    {
        ldmatrix4(out, p ^ 32 * k);
    }
    __device__ __forceinline__ void values(sums16<K> &c) const
    {
        left16<T, K> all;
#pragma unroll
        for (int k = 0; k < K / 16; k++)
            get(all.a[k], k);
        all.values(c);
    }
};
template <int K, int W> struct left16_shared<float, K, W> : left16<float, K> {
    __device__ __forceinline__ left16_shared(const float *, const float *src, int ld, int row,
                                             int column, int limit)
    {
        this->load(src + column, ld, row, limit);
    }
    __device__ __forceinline__ void values(sums16<K> &c) const
    {
#pragma unroll
        for (int n = 0; n < K / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                c[n][e] = this->p[e / 2][column_of(n, e)];
    }
};

// Add left right^T to c, for the first N rows of the right factor.
template <typename T, int N, int K, typename Left>
static __device__ __forceinline__ void add_by_rows(sums16<N> &c, const Left &left,
                                                   const tile<T, K> &right)
{
    const int lane = lane_id();
    if constexpr (sizeof(T) == 2) {
        const uint32_t p = tile_row<T, K>(right.p, (lane & 7) + (lane >> 4) * 8, lane >> 3 & 1);
#pragma unroll
        for (int k = 0; k < K / 16; k++) {
            uint32_t a[4];
            left.get(a, k);
#pragma unroll
            for (int n = 0; n < N / 16; n++) {
                uint32_t b[4];
                ldmatrix4(b, (p ^ 32 * k) + n * 16 * K * sizeof(T));
                mma16816(c[2 * n], a, b[0], b[1]);
                mma16816(c[2 * n + 1], a, b[2], b[3]);
            }
        }
    } else {
#pragma unroll 1
        for (int k = 0; k < K; k += 4) {
            float x[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                x[0][i] = left.p[0][(k + i) * left.step], x[1][i] = left.p[1][(k + i) * left.step];
#pragma unroll
            for (int n = 0; n < N / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const float4 y =
                        *reinterpret_cast<const float4 *>(right.row(column_of(n, e)) + k);
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        float &sum = c[n][2 * r + e];
                        sum = fmaf(x[r][0], y.x, sum);
                        sum = fmaf(x[r][1], y.y, sum);
                        sum = fmaf(x[r][2], y.z, sum);
                        sum = fmaf(x[r][3], y.w, sum);
                    }
                }
        }
    }
}

// Add left right to c, for K rows of the right factor.
template <typename T, int N, int K>
static __device__ __forceinline__ void add_by_columns(sums16<N> &c, const left16<T, K> &left,
                                                      const tile<T, N> &right)
{
    const int lane = lane_id();
    if constexpr (sizeof(T) == 2) {
        const uint32_t p = tile_row<T, N>(right.p, lane & 15, lane >> 4);
#pragma unroll
        for (int k = 0; k < K / 16; k++)
#pragma unroll
            for (int n = 0; n < N / 16; n++) {
                uint32_t b[4];
                ldmatrix4_trans(b, (p ^ 32 * n) + k * 16 * N * sizeof(T));
                mma16816(c[2 * n], left.a[k], b[0], b[1]);
                mma16816(c[2 * n + 1], left.a[k], b[2], b[3]);
            }
    } else {
#pragma unroll 1
        for (int k = 0; k < K; k++) {
            const float x0 = left.p[0][k * left.step], x1 = left.p[1][k * left.step];
            const float *row = right.row(k);
#pragma unroll
            for (int n = 0; n < N / 8; n++) {
                const float2 y = *reinterpret_cast<const float2 *>(row + column_of(n, 0));
                c[n][0] = fmaf(x0, y.x, c[n][0]);
                c[n][1] = fmaf(x0, y.y, c[n][1]);
                c[n][2] = fmaf(x1, y.x, c[n][2]);
                c[n][3] = fmaf(x1, y.y, c[n][3]);
            }
        }
    }
}

// Multiply the columns of c by the factors of a chunk's rows.
static __device__ __forceinline__ void by_columns(sums16<CHUNK> &c, const float *factor)
{
#pragma unroll
    for (int n = 0; n < CHUNK / 8; n++) {
        const float2 f = *reinterpret_cast<const float2 *>(factor + column_of(n, 0));
        c[n][0] *= f.x, c[n][1] *= f.y, c[n][2] *= f.x, c[n][3] *= f.y;
    }
}

// Multiply a state by its decay. One of 0 leaves nothing, whatever the state was.
template <int N> static __device__ __forceinline__ void decay(sums16<N> &c, float by)
{
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int e = 0; e < 4; e++)
            c[n][e] = by != 0 ? c[n][e] * by : 0;
}

// Make columns from `count` on zero.
static __device__ __forceinline__ void first_columns(sums16<CHUNK> &c, int count)
{
    if (count < CHUNK)
#pragma unroll
        for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int at = column_of(n, e);
                c[n][e] = at < count ? c[n][e] : 0.0f;
            }
}

// Write 16 rows of products to an array.
template <typename T, int N>
static __device__ __forceinline__ void store_rows(T *dst, int ld, const sums16<N> &c)
{
#pragma unroll
    for (int n = 0; n < N / 8; n++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
            T *to = dst + (int64_t)row_of(2 * r) * ld + column_of(n, 0);
            if constexpr (sizeof(T) == 2)
                *reinterpret_cast<uint32_t *>(to) = pack2(c[n][2 * r], c[n][2 * r + 1]);
            else
                *reinterpret_cast<float2 *>(to) = make_float2(c[n][2 * r], c[n][2 * r + 1]);
        }
}

// Read 16 columns of the first `rows` rows of a chunk, transposed: a row of c is a column of the array, or (lp) of the
// tile that has it. Rows beyond are repeated, or zero.
template <typename T>
static __device__ __forceinline__ void load_columns(sums16<CHUNK> &c, const T *shared, int column,
                                                    const T *src, int64_t ld, int rows)
{
    if constexpr (sizeof(T) == 2) {
        left16<T, CHUNK> all;
        all.columns(shared, column);
        all.values(c);
    } else {
#pragma unroll
        for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                c[n][e] = src[min(column_of(n, e), rows - 1) * ld + column + row_of(e)];
    }
}

// Write such columns of the first `rows` rows of an array.
template <typename T>
static __device__ __forceinline__ void store_columns(T *dst, int64_t ld, int rows,
                                                     const sums16<CHUNK> &c)
{
#pragma unroll
    for (int n = 0; n < CHUNK / 8; n++)
#pragma unroll
        for (int r = 0; r < 2; r++)
            if constexpr (sizeof(T) == 2) {
                const int row = 8 * n + lane_id() / 4;
                const uint32_t x = transposed(pack2(c[n][2 * r], c[n][2 * r + 1]));
                if (row < rows)
                    *reinterpret_cast<uint32_t *>(dst + row * ld + lane_id() % 4 * 2 + 8 * r) = x;
            } else {
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (column_of(n, e) < rows)
                        dst[column_of(n, e) * ld + row_of(2 * r)] = c[n][2 * r + e];
            }
}

// Columns of value head h, and of its query and key head, in rows of K query, K key and H value heads.
template <int D> struct delta_heads {
    int row, q, k, v;

    __device__ __forceinline__ delta_heads(int H, int K, int h)
    {
        const int kv = h / (H / K);
        row = (2 * K + H) * D;
        q = kv * D;
        k = (K + kv) * D;
        v = (2 * K + h) * D;
    }
};

// The number of a chunk of a head among all.
static __device__ __forceinline__ int64_t chunk_at(int b, int h, int chunk, int H, int S)
{
    return ((int64_t)b * H + h) * ((S + CHUNK - 1) / CHUNK) + chunk;
}

// Chunks that a pass over them in turn has in shared memory: with two, one is copied while the other is computed.
#ifndef NJ_DELTA_STAGES
#define NJ_DELTA_STAGES 1
#endif

// Parts of a chunk that such a pass has in shared memory (lp), for 64 columns of a head.
template <typename T, int D> struct chunk_tiles {
    T *keys, *queries, *solve, *scores, *columns;
};

// The chunks of a head, from its first row and matrices on.
template <typename T, int D> struct chunk_source {
    static constexpr int SIZE = CHUNK * (2 * D + 2 * CHUNK + 64); // elements of the tiles
    const T *q, *k, *solve, *scores, *columns;
    int ld, columns_ld, S; // elements from a row of q, k to the next, and of columns

    __device__ __forceinline__ chunk_tiles<T, D> tiles(uint4 *shared, int chunk) const
    {
        T *keys = reinterpret_cast<T *>(shared) + chunk % NJ_DELTA_STAGES * SIZE;
        T *solve_tile = keys + 2 * CHUNK * D;
        return {keys, keys + CHUNK * D, solve_tile, solve_tile + CHUNK * CHUNK,
                solve_tile + 2 * CHUNK * CHUNK};
    }
    // Start to copy a chunk.
    __device__ __forceinline__ void fetch(uint4 *shared, int chunk) const
    {
        const chunk_tiles<T, D> to = tiles(shared, chunk);
        const int64_t first = chunk * CHUNK, matrix = first * CHUNK;
        const int rows = min(CHUNK, S - chunk * CHUNK);
        tile_load<T, D, CHUNK>(to.keys, k + first * ld, ld, 0, rows);
        tile_load<T, D, CHUNK>(to.queries, q + first * ld, ld, 0, rows);
        tile_load<T, CHUNK, CHUNK>(to.solve, solve + matrix, CHUNK, 0, CHUNK);
        tile_load<T, CHUNK, CHUNK>(to.scores, scores + matrix, CHUNK, 0, CHUNK);
        tile_load<T, 64, CHUNK>(to.columns, columns + first * columns_ld, columns_ld, 0, rows);
    }
};

static __device__ __forceinline__ float exp_fast(float x)
{
    return exp2_fast(x * LOG2_E);
}

// Return log(1 + e^x). The quotient makes up for the digits that 1 + e loses.
static __device__ __forceinline__ float softplus(float x)
{
    const float e = exp_fast(-fabsf(x)), y = 1 + e;
    return fmaxf(x, 0) + (y == 1 ? e : logf(y) * (e / (y - 1)));
}

#endif
