// SPDX-License-Identifier: Apache-2.0
//
// gemv_blocks.cuh: products of a row of x and rows of quantized blocks. A lane takes every 32nd chunk of eight
// elements, UNROLL of each row of the weights at a time.
#ifndef NOJIT_GEMV_BLOCKS_CUH
#define NOJIT_GEMV_BLOCKS_CUH

#include "dequantize.cuh"

template <int TYPE, int UNROLL> struct block_chunks {
    typedef block<TYPE> B;
    eight x[UNROLL];

    // Load chunks at, at + 32, ... of a row of C elements; in place of those beyond it, the last one.
    __device__ __forceinline__ void fetch(const int *data, int64_t row, int at, int C)
    {
        constexpr int IN_BLOCK = B::ELEMENTS / 8;
#pragma unroll
        for (int u = 0; u < UNROLL; u++) {
            const unsigned q = min(at + 32 * u, C / 8 - 1); // a shift divides it
            const int64_t n = row * (C / B::ELEMENTS) + q / IN_BLOCK;
            x[u] = B::read(place_of<TYPE>(data, n), (int)(q % IN_BLOCK) * 8);
        }
    }
    // Return the product of chunk u and eight elements.
    __device__ __forceinline__ float dot(int u, const float (&a)[8]) const
    {
        float v[8];
        B::values(v, x[u]);
        float sum = a[0] * v[0];
#pragma unroll
        for (int i = 1; i < 8; i++)
            sum += a[i] * v[i];
        return sum;
    }
};

#endif
