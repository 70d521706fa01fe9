// SPDX-License-Identifier: Apache-2.0
//
// e4m3.cuh: conversion of E4M3 numbers to another scale.
#ifndef NOJIT_E4M3_CUH
#define NOJIT_E4M3_CUH

#include <cuda_fp8.h>

#include "common.cuh"

// from_e4m3() returns number `byte` of a word divided by E4M3_UNIT: it places the bits of the E4M3 number among those
// of a float, whose exponent bias is 120 larger. NaN becomes a finite number here; that is harmless, because a row with
// a NaN has no finite scale.
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
