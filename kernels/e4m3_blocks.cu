// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Write the scales of a tile; one block per tile. The exponent of a float32 is already the byte.
template <typename T>
static __device__ __forceinline__ void e4m3_blocks(int32_t *words, const float *scale, int R, int C)
{
    const int r = blockIdx.y * 128 + 32 * (threadIdx.x % 4) + threadIdx.x / 4;
    const uint32_t byte = r < R ? __float_as_uint(scale[r]) >> 23 & 255 : 0;
    const int64_t tile = (int64_t)blockIdx.y * gridDim.x + blockIdx.x;
    words[tile * 128 + threadIdx.x] = (int32_t)(byte * 0x01010101u);
}
