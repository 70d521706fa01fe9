// SPDX-License-Identifier: Apache-2.0
//
// e4m3.cuh: numbers of e4m3 that get another scale.
#ifndef NOJIT_E4M3_CUH
#define NOJIT_E4M3_CUH

#include <cuda_fp8.h>

#include "common.cuh"

// Number `byte` of a word, over E4M3_UNIT: digits of e4m3 are those of a float whose exponent counts from 120
// less. A NaN becomes a number here; the scale of a row that has one is none.
constexpr float E4M3_UNIT = 0x1p120f;

static __device__ __forceinline__ float from_e4m3(uint32_t word, int byte)
{
    const int32_t top = (int32_t)(word << (24 - 8 * byte));
    return __int_as_float(top >> 4 & 0x87f00000);
}

static __device__ __forceinline__ uint32_t to_e4m3(float low, float high)
{
    return __nv_cvt_float2_to_fp8x2(make_float2(low, high), __NV_SATFINITE, __NV_E4M3);
}

#endif
