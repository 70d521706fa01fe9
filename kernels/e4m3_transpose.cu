// SPDX-License-Identifier: Apache-2.0
#include "e4m3.cuh"
#include "transpose.cuh"

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
        factor[i] = factor[i] / whole * E4M3_UNIT;
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
