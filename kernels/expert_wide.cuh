// SPDX-License-Identifier: Apache-2.0
//
// expert_wide.cuh: tiles whose rows a product sums over, as the gradients of expert_gemm do: they are read across.
#ifndef NOJIT_EXPERT_WIDE_CUH
#define NOJIT_EXPERT_WIDE_CUH

#include "expert_gemm.cu"

// Rows of such a tile: as many as a tile of expert_gemm has columns.
template <typename T> constexpr int WIDE_ROWS = CHUNKS *vec<T>::N;

template <typename T, int COLUMNS> static __device__ __forceinline__ int wide_at(int row, int chunk)
{
    return row * COLUMNS + (chunk ^ (row & 7)) * vec<T>::N;
}

// Start the copies of the rows that from(row) returns; zeros where it returns NULL, and from column `columns` on.
template <typename T, int COLUMNS, typename From>
static __device__ __forceinline__ void wide_load(T *tile, const T *any, int columns,
                                                 const From &from)
{
    constexpr int EACH = COLUMNS / vec<T>::N, STEP = NJ_THREADS / EACH;
    const int chunk = threadIdx.x % EACH, c = chunk * vec<T>::N;
#pragma unroll
    for (int i = 0; i < WIDE_ROWS<T> / STEP; i++) {
        const int r = threadIdx.x / EACH + i * STEP;
        const T *const row = c < columns ? from(r) : nullptr;
        cp16(tile + wide_at<T, COLUMNS>(r, chunk), row ? row + c : any, row != nullptr);
    }
}

// Add the product of a tile of rows and a wide one.
static __device__ __forceinline__ void add_rows(tile_sums<lp> &sums, const lp *a, const lp *b)
{
    const int lane = lane_id(), warp = threadIdx.x / 32;
    const int row = warp / 4 * 32 + lane % 16, chunk = warp % 4 * 4 + lane / 16;
#pragma unroll
    for (int k = 0; k < CHUNKS; k += 2) {
        uint32_t x[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++)
            ldmatrix4(x[m], shared_address(a + chunk_at<lp>(row + 16 * m, k + lane / 16)));
#pragma unroll
        for (int n = 0; n < 2; n++) {
            uint32_t y[4];
            const int at = wide_at<lp, TILE_COLUMNS>(8 * k + lane % 16, chunk + 2 * n);
            ldmatrix4_trans(y, shared_address(b + at));
#pragma unroll
            for (int m = 0; m < 2; m++) {
                mma16816(sums.acc[m][2 * n], x[m], y[0], y[1]);
                mma16816(sums.acc[m][2 * n + 1], x[m], y[2], y[3]);
            }
        }
    }
}

// Add the product of two wide tiles: the sums over their rows.
static __device__ __forceinline__ void add_columns(tile_sums<lp> &sums, const lp *a, const lp *b)
{
    const int lane = lane_id(), warp = threadIdx.x / 32;
    const int chunk = warp % 4 * 4 + lane / 16;
#pragma unroll
    for (int k = 0; k < CHUNKS; k += 2) {
        uint32_t x[2][4];
#pragma unroll
        for (int m = 0; m < 2; m++) {
            const int row = 8 * k + lane % 8 + lane / 16 * 8;
            const int its = warp / 4 * 4 + 2 * m + lane / 8 % 2;
            ldmatrix4_trans(x[m], shared_address(a + wide_at<lp, TILE_ROWS>(row, its)));
        }
#pragma unroll
        for (int n = 0; n < 2; n++) {
            uint32_t y[4];
            const int at = wide_at<lp, TILE_COLUMNS>(8 * k + lane % 16, chunk + 2 * n);
            ldmatrix4_trans(y, shared_address(b + at));
#pragma unroll
            for (int m = 0; m < 2; m++) {
                mma16816(sums.acc[m][2 * n], x[m], y[0], y[1]);
                mma16816(sums.acc[m][2 * n + 1], x[m], y[2], y[3]);
            }
        }
    }
}

// Add a column of a tile times a row of a wide one to the sums of a thread: x has its four rows.
static __device__ __forceinline__ void add_outer(tile_sums<float> &sums, const float (&x)[4],
                                                 const float *b, int k)
{
#pragma unroll
    for (int j = 0; j < 8; j += 2) {
        const int c = tile_sums<float>::column(j);
        const float2 y =
            *reinterpret_cast<const float2 *>(b + wide_at<float, TILE_COLUMNS>(k, c / 4) + c % 4);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            sums.acc[i][j] += x[i] * y.x;
            sums.acc[i][j + 1] += x[i] * y.y;
        }
    }
}

static __device__ __forceinline__ void add_rows(tile_sums<float> &sums, const float *a,
                                                const float *b)
{
#pragma unroll 4
    for (int k = 0; k < WIDE_ROWS<float>; k++) {
        float x[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            x[i] = a[chunk_at<float>(threadIdx.x / 16 + 16 * i, k / 4) + k % 4];
        add_outer(sums, x, b, k);
    }
}

static __device__ __forceinline__ void add_columns(tile_sums<float> &sums, const float *a,
                                                   const float *b)
{
#pragma unroll 4
    for (int k = 0; k < WIDE_ROWS<float>; k++) {
        float x[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int m = threadIdx.x / 16 + 16 * i;
            x[i] = a[wide_at<float, TILE_ROWS>(k, m / 4) + m % 4];
        }
        add_outer(sums, x, b, k);
    }
}

#endif
