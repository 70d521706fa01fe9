// SPDX-License-Identifier: Apache-2.0
#include "experts.cuh"
#include "mma.cuh"

// A stage of shared memory holds 128 bytes of each row of a tile: eight chunks, permuted by row.
constexpr int TILE_ROWS = 64, TILE_COLUMNS = 128, CHUNKS = 8;

template <typename T> static __device__ __forceinline__ int chunk_at(int row, int chunk)
{
    return (row * CHUNKS + (chunk ^ (row & 7))) * vec<T>::N;
}

// Sums of a tile of lp: a warp has 32 rows and 32 columns.
template <typename T> struct tile_sums {
    float acc[2][4][4] = {};

    __device__ __forceinline__ void add(const T *a, const T *b)
    {
        const int lane = lane_id(), warp = threadIdx.x / 32;
        const int row = warp / 4 * 32 + lane % 16;
        const int column = warp % 4 * 32 + lane % 8 + lane / 16 * 8;
#pragma unroll
        for (int k = 0; k < CHUNKS; k += 2) {
            uint32_t x[2][4];
#pragma unroll
            for (int m = 0; m < 2; m++)
                ldmatrix4(x[m], shared_address(a + chunk_at<T>(row + 16 * m, k + lane / 16)));
#pragma unroll
            for (int n = 0; n < 2; n++) {
                uint32_t y[4];
                ldmatrix4(y, shared_address(b + chunk_at<T>(column + 16 * n, k + lane / 8 % 2)));
#pragma unroll
                for (int m = 0; m < 2; m++) {
                    mma16816(acc[m][2 * n], x[m], y[0], y[1]);
                    mma16816(acc[m][2 * n + 1], x[m], y[2], y[3]);
                }
            }
        }
    }
    // Call put(row, column, sum, the next column's sum).
    template <typename Put> __device__ __forceinline__ void each(Put put) const
    {
        const int lane = lane_id(), warp = threadIdx.x / 32;
#pragma unroll
        for (int m = 0; m < 2; m++)
#pragma unroll
            for (int n = 0; n < 4; n++)
#pragma unroll
                for (int h = 0; h < 2; h++)
                    put(warp / 4 * 32 + 16 * m + lane / 4 + 8 * h,
                        warp % 4 * 32 + 8 * n + lane % 4 * 2, acc[m][n][2 * h],
                        acc[m][n][2 * h + 1]);
    }
};

// Sums of a tile of float: a thread has rows y, y + 16, ... and columns 2x, 2x + 1, 2x + 32, ...
template <> struct tile_sums<float> {
    float acc[4][8] = {};

    __device__ __forceinline__ static int column(int j)
    {
        return threadIdx.x % 16 * 2 + j / 2 * 32 + j % 2;
    }
    __device__ __forceinline__ void add(const float *a, const float *b)
    {
#pragma unroll 1
        for (int k = 0; k < CHUNKS; k++) {
            float4 x[4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                x[i] = *reinterpret_cast<const float4 *>(
                    a + chunk_at<float>(threadIdx.x / 16 + 16 * i, k));
#pragma unroll
            for (int j = 0; j < 8; j++) {
                const float4 y =
                    *reinterpret_cast<const float4 *>(b + chunk_at<float>(column(j), k));
#pragma unroll
                for (int i = 0; i < 4; i++)
                    acc[i][j] += dot4(x[i], y);
            }
        }
    }
    template <typename Put> __device__ __forceinline__ void each(Put put) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 8; j += 2)
                put(threadIdx.x / 16 + 16 * i, column(j), acc[i][j], acc[i][j + 1]);
    }
};

static __device__ __forceinline__ void store2(lp *to, float x, float y)
{
    *reinterpret_cast<uint32_t *>(to) = pack2(x, y);
}
static __device__ __forceinline__ void store2(float *to, float x, float y)
{
    *reinterpret_cast<float2 *>(to) = make_float2(x, y);
}

// The rows whose chunks a thread copies: ROWS of a tile, every 32nd.
template <typename T, int ROWS> struct tile_source {
    const T *from[ROWS / 32];
    bool valid[ROWS / 32];

    // Start the copies of the columns from k on; what lies beyond C becomes zero.
    __device__ __forceinline__ void load(T *tile, int k, int C) const
    {
        const int chunk = threadIdx.x % CHUNKS, row = threadIdx.x / CHUNKS;
        const int c = k + chunk * vec<T>::N;
#pragma unroll
        for (int i = 0; i < ROWS / 32; i++)
            cp16(tile + chunk_at<T>(row + 32 * i, chunk), from[i] + (c < C ? c : 0),
                 valid[i] && c < C);
    }
};

template <typename T>
static __device__ __forceinline__ void expert_gemm(T *y, const T *x, const int *row, const T *w,
                                                   const T *bias, const int *first, int P, int R,
                                                   int E, int M, int C, int ld, int G)
{
    constexpr int DEPTH = CHUNKS * vec<T>::N, STAGE = (TILE_ROWS + TILE_COLUMNS) * DEPTH;
    extern __shared__ uint4 shared[];
    T *const stages = reinterpret_cast<T *>(shared);
    expert_tiles<TILE_ROWS, TILE_COLUMNS> tiles(first, E, M);
    expert_tile t;
    for (int i = blockIdx.x; tiles.at(i, t); i += gridDim.x) {
        const T *const matrix = w + ((int64_t)t.expert * M + t.column) * C;
        tile_source<T, TILE_ROWS> a;
        tile_source<T, TILE_COLUMNS> b;
        const int mine = threadIdx.x / CHUNKS;
#pragma unroll
        for (int k = 0; k < TILE_ROWS / 32; k++) {
            a.valid[k] = mine + 32 * k < t.rows;
            const int64_t p = t.place + (a.valid[k] ? mine + 32 * k : 0);
            a.from[k] = x + (row ? row[p] : p) * C;
        }
#pragma unroll
        for (int k = 0; k < TILE_COLUMNS / 32; k++) {
            b.valid[k] = mine + 32 * k < M - t.column;
            b.from[k] = matrix + (int64_t)(b.valid[k] ? mine + 32 * k : 0) * C;
        }
        tile_sums<T> sums;
        __syncthreads(); // the stages may still be read for the tile before
        a.load(stages, 0, C);
        b.load(stages + TILE_ROWS * DEPTH, 0, C);
        T *now = stages, *next = stages + STAGE;
        for (int k = 0; k < C; k += DEPTH) {
            cp_wait();
            __syncthreads();
            if (k + DEPTH < C) {
                a.load(next, k + DEPTH, C);
                b.load(next + TILE_ROWS * DEPTH, k + DEPTH, C);
            }
            sums.add(now, now + TILE_ROWS * DEPTH);
            T *const done = now;
            now = next;
            next = done;
        }
        const T *const its = bias ? bias + (int64_t)t.expert * M + t.column : nullptr;
        sums.each([&](int r, int c, float sum, float beside) {
            if (r >= t.rows || c >= M - t.column)
                return;
            if (its) {
                sum += to_f32(its[c]);
                beside += to_f32(its[c + 1]);
            }
            store2(y + (int64_t)(t.place + r) * ld + t.column + c, sum, beside);
        });
    }
}
