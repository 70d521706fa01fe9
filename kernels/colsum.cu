// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Return the sum over the lanes of a warp that have the same column.
template <int COLUMNS> static __device__ __forceinline__ float over_rows(float x)
{
#pragma unroll
    for (int d = COLUMNS; d < 32; d *= 2)
        x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}

// Add the column sums of part to dst. A block has 8 columns, 32 bytes of a row, the smallest unit of a memory access.
// Thread r of a column adds rows r, r + ROWS, ..., BATCH of them in flight (with 32 threads per column, 288), then
// warps add their sums.
template <typename T>
static __device__ __forceinline__ void colsum(float *dst, const float *part, int P, int C)
{
    constexpr int COLUMNS = 8, ROWS = NJ_THREADS / COLUMNS, WARPS = NJ_THREADS / 32, BATCH = 9;
    __shared__ float sums[WARPS][COLUMNS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, column = lane % COLUMNS;
    const int c = blockIdx.x * COLUMNS + column, row = threadIdx.x / COLUMNS;
    const float before = threadIdx.x < COLUMNS && c < C ? dst[c] : 0.0f;
    const int64_t step = (int64_t)ROWS * C;
    const float *at = part + (int64_t)row * C + c;
    float sum = 0;
#pragma unroll 1
    for (int left = c < C ? P - row : 0; left > 0; left -= BATCH * ROWS, at += BATCH * step) {
        float x[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            x[k] = left > k * ROWS ? at[k * step] : 0.0f;
#pragma unroll
        for (int k = 0; k < BATCH; k++)
            sum += x[k];
    }
    sum = over_rows<COLUMNS>(sum);
    if (lane < COLUMNS)
        sums[warp][column] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = 0;
#pragma unroll
        for (int k = 0; k < WARPS; k += 32 / COLUMNS)
            sum += sums[k + lane / COLUMNS][column];
        sum = over_rows<COLUMNS>(sum);
        if (lane < COLUMNS && c < C)
            dst[c] = before + sum;
    }
}
