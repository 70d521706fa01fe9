// SPDX-License-Identifier: Apache-2.0
//
// transpose.cuh: transposition of rows of bytes. A block has a tile of 128 rows and columns; a thread has four rows of
// it and four columns in each 32. From what it reads it makes words of four rows of a column. The words of a warp lie
// in 32 different banks, both when they are written and when they are read.
#ifndef NOJIT_TRANSPOSE_CUH
#define NOJIT_TRANSPOSE_CUH

#include "common.cuh"

struct byte_tile {
    static constexpr int SIZE = 128, WORDS = SIZE / 4, PARTS = SIZE / 32;
    int first_row, first_column, word, column;

    static __device__ __forceinline__ byte_tile own()
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        return {block_from_last() * SIZE, (int)blockIdx.y * SIZE, warp * 4 + lane / 8,
                lane % 8 * 4};
    }
    // Return the first of the thread's four rows.
    __device__ __forceinline__ int row() const { return first_row + 4 * word; }
    // Load the thread's words of x, whose R rows are X bytes apart.
    __device__ __forceinline__ void load(uint32_t (&raw)[PARTS][4], const uint8_t *x, int R, int C,
                                         int X) const
    {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int k = 0; k < PARTS; k++) {
                const int c = first_column + 32 * k + column;
                raw[k][i] = 0;
                if (row() < R && c < C)
                    raw[k][i] =
                        *reinterpret_cast<const uint32_t *>(x + (int64_t)(row() + i) * X + c);
            }
    }
    // Store q[C, R]. turn(out, in) converts a word of each row to a word of each column.
    template <typename F>
    __device__ __forceinline__ void store(uint8_t *q, const uint32_t (&raw)[PARTS][4], int R, int C,
                                          F turn) const
    {
        __shared__ uint32_t tile[SIZE][WORDS + 1];
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int k = 0; k < PARTS; k++) {
            uint32_t out[4];
            turn(out, raw[k]);
#pragma unroll
            for (int j = 0; j < 4; j++)
                tile[32 * k + column + j][word] = out[j];
        }
        __syncthreads();
        const int at = first_row + 4 * lane;
        for (int c = warp; c < SIZE; c += NJ_THREADS / 32)
            if (first_column + c < C && at < R)
                *reinterpret_cast<uint32_t *>(q + (int64_t)(first_column + c) * R + at) =
                    tile[c][lane];
    }
};

#endif
