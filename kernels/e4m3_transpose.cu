// SPDX-License-Identifier: Apache-2.0
#include "quantize.cuh"

// Number `byte` of a word, over 2^120: digits of e4m3 are those of a float whose exponent counts from 120
// less. A NaN becomes a number here; the scale of a row that has one is none.
static __device__ __forceinline__ float from_e4m3(uint32_t word, int byte)
{
    const int32_t top = (int32_t)(word << (24 - 8 * byte));
    return __int_as_float(top >> 4 & 0x87f00000);
}

static __device__ __forceinline__ uint32_t to_e4m3(float low, float high)
{
    return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}

// A block has a tile of 128 rows and columns, a thread four rows of it and four columns in each 32: it
// makes a word, four rows of a column, from what it reads. Words of a warp lie in 32 banks both times.
template <typename T>
static __device__ __forceinline__ void e4m3_transpose(uint8_t *q, float *q_scale, const uint8_t *x,
                                                      const float *scale, const float *top, int R,
                                                      int C)
{
    constexpr int TILE = 128, WORDS = TILE / 4, PARTS = TILE / 32;
    __shared__ uint32_t tile[TILE][WORDS + 1];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_row = block_from_last() * TILE, first_column = blockIdx.y * TILE;
    const int word = warp * 4 + lane / 8, column = lane % 8 * 4, row = first_row + 4 * word;
    const float whole = *top;
    uint32_t raw[4][PARTS];
    float factor[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        factor[i] = row < R ? scale[row + i] / whole * 0x1p120f : 0.0f;
#pragma unroll
        for (int k = 0; k < PARTS; k++) {
            const int c = first_column + 32 * k + column;
            raw[i][k] = 0;
            if (row < R && c < C)
                raw[i][k] = *reinterpret_cast<const uint32_t *>(x + (int64_t)(row + i) * C + c);
        }
    }
#pragma unroll
    for (int k = 0; k < PARTS; k++) {
        float v[4][4]; // [row][column]
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[i][j] = from_e4m3(raw[i][k], j) * factor[i];
#pragma unroll
        for (int j = 0; j < 4; j++)
            tile[32 * k + column + j][word] = to_e4m3(v[0][j], v[1][j]) | to_e4m3(v[2][j], v[3][j])
                                                                              << 16;
    }
    __syncthreads();
    const int at = first_row + 4 * lane;
    for (int c = warp; c < TILE; c += NJ_THREADS / 32)
        if (first_column + c < C && at < R)
            *reinterpret_cast<uint32_t *>(q + (int64_t)(first_column + c) * R + at) = tile[c][lane];
    if (first_row == 0 && threadIdx.x < TILE && first_column + threadIdx.x < C)
        q_scale[first_column + threadIdx.x] = whole;
}
