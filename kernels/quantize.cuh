// SPDX-License-Identifier: Apache-2.0
//
// quantize.cuh: rows as E4M3, each with its float32 scale: x = q scale, where scale is the least power of two with max
// |x| <= 448 scale, and 448 is the largest E4M3 number. Because scales are powers of two, a row can be given another
// scale without rounding again, except for numbers that become subnormal (e4m3_transpose.cu).
#ifndef NOJIT_QUANTIZE_CUH
#define NOJIT_QUANTIZE_CUH

#include <cuda_fp8.h>

#include "norm.cuh"

// The largest |x| is kept as its bits, which have the order of the numbers, with NaN above infinity: an infinity or NaN
// in a row therefore reaches its scale. It starts at 2^-100, so that the scale of a row of zeros is not zero and can be
// divided by.
constexpr uint32_t LEAST_TOP = 0x0d800000;

template <typename T, int N>
static __device__ __forceinline__ uint32_t largest(const vec<T, N> &x, uint32_t top)
{
#pragma unroll
    for (int i = 0; i < N; i++)
        top = max(top, __float_as_uint(x.v[i]) & 0x7fffffffu);
    return top;
}

// Return the largest value of a group of WIDTH threads, the same in each. All threads of the block must call it.
template <int WIDTH> static __device__ __forceinline__ uint32_t group_max(uint32_t x)
{
#pragma unroll
    for (int d = 16; d > 0; d >>= 1)
        x = max(x, __shfl_xor_sync(0xffffffffu, x, d));
    if (WIDTH == 32)
        return x;
    __shared__ uint32_t part[NJ_THREADS / 32];
    const int first = threadIdx.x / WIDTH * (WIDTH / 32);
    __syncthreads(); // part may still be read from an earlier call
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = x;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < WIDTH / 32; i++)
        x = max(x, part[first + i]);
    return x;
}

// Return the scale of a row whose largest |x| has these bits. Infinity and NaN stay what they are.
static __device__ __forceinline__ float scale_of(uint32_t top)
{
    const uint32_t least = __float_as_uint(__uint_as_float(top) / 448.0f);
    return __uint_as_float(top < 0x7f800000 ? (least + 0x007fffff) & 0x7f800000 : top);
}

// Store the scale of a row, and update the largest scale of all rows; one thread calls it. Bits of scales have the
// order of the numbers, with NaN above infinity, so the maximum does not depend on the order of the rows.
static __device__ __forceinline__ void keep_scale(float *scale, float *most, uint32_t top)
{
    const float own = scale_of(top);
    *scale = own;
    if (most)
        asm volatile("red.global.max.u32 [%0], %1;" ::"l"(most), "r"(__float_as_uint(own))
                     : "memory");
}

static __device__ __forceinline__ float inverse_of(uint32_t top)
{
    return 1.0f / scale_of(top);
}

// Store x times inverse as E4M3, rounded to nearest even; values beyond 448 become 448, and NaN stays NaN.
template <typename T, int N>
static __device__ __forceinline__ void store_e4m3(uint8_t *q, const vec<T, N> &x, float inverse)
{
    typedef typename words<N>::type raw;
    alignas(raw) uint32_t word[N / 4];
#pragma unroll
    for (int i = 0; i < N; i += 2) {
        const uint32_t pair = __nv_cvt_float2_to_fp8x2(
            make_float2(x.v[i] * inverse, x.v[i + 1] * inverse), __NV_SATFINITE, __NV_E4M3);
        word[i / 4] = i % 4 ? word[i / 4] | pair << 16 : pair;
    }
    *reinterpret_cast<raw *>(q) = *reinterpret_cast<const raw *>(word);
}

#endif
