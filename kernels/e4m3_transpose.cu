// SPDX-License-Identifier: Apache-2.0
#include "quantize.cuh"
#include "transpose.cuh"

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

template <typename T>
static __device__ __forceinline__ void e4m3_transpose(uint8_t *q, float *q_scale, const uint8_t *x,
                                                      const float *scale, const float *top, int R,
                                                      int C)
{
    const byte_tile tile = byte_tile::own();
    const int row = tile.row();
    const float whole = *top;
    uint32_t raw[tile.PARTS][4];
    float factor[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        factor[i] = row < R ? scale[row + i] : 0.0f;
    tile.load(raw, x, R, C, C);
#pragma unroll
    for (int i = 0; i < 4; i++)
        factor[i] = factor[i] / whole * 0x1p120f;
    tile.store(q, raw, R, C, [&](uint32_t(&out)[4], const uint32_t(&in)[4]) {
        float v[4][4]; // [row][column]
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[i][j] = from_e4m3(in[i], j) * factor[i];
#pragma unroll
        for (int j = 0; j < 4; j++)
            out[j] = to_e4m3(v[0][j], v[1][j]) | to_e4m3(v[2][j], v[3][j]) << 16;
    });
    const int column = tile.first_column + (int)threadIdx.x;
    if (tile.first_row == 0 && threadIdx.x < tile.SIZE && column < C)
        q_scale[column] = whole;
}
