/* SPDX-License-Identifier: Apache-2.0
 *
 * narrow.h: float32 to and from bf16, f16 and e4m3, without branches, so that loops over lanes
 * become vector code.
 */
#ifndef NOJIT_SIM_NARROW_H
#define NOJIT_SIM_NARROW_H

#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* value >> by, rounded to the nearest, ties to even. */
static inline uint32_t shift_rounded(uint32_t value, uint32_t by)
{
    return (value + ((UINT32_C(1) << by >> 1) - 1) + (value >> by & 1)) >> by;
}

static inline float float_of_bf16(uint32_t bf16)
{
    return float_of_bits(bf16 << 16);
}

static inline uint32_t bf16_of_float(float x)
{
    return x != x ? 0x7fff : shift_rounded(bits_of_float(x), 16);
}

/* A subnormal is a small integer times 2^-24. */
static inline float float_of_f16(uint32_t f16)
{
    const uint32_t sign = (f16 & 0x8000) << 16, rest = f16 & 0x7fff;
    const uint32_t special = rest >= 0x7c00 ? 0x38000000u : 0;
    const uint32_t normal = (rest << 13) + 0x38000000u + special;
    const uint32_t small = bits_of_float((float)(int32_t)rest * 0x1p-24f);
    return float_of_bits(sign | (rest < 0x400 ? small : normal));
}

/* A format with `mantissa` bits whose smallest normal number is 2^lowest: below that, adding a
 * power of two makes the float adder round to the grid of subnormals. */
static inline uint32_t narrow_of_float(uint32_t magnitude, uint32_t mantissa, int lowest)
{
    const uint32_t bias = (uint32_t)(lowest + 126) << 23; /* exponents start anew at 1 */
    const uint32_t normal = shift_rounded(magnitude - bias, 23 - mantissa);
    const uint32_t grid = (uint32_t)(lowest - (int)mantissa + 23 + 127) << 23;
    const uint32_t small = bits_of_float(float_of_bits(magnitude) + float_of_bits(grid)) - grid;
    return magnitude < (uint32_t)(lowest + 127) << 23 ? small : normal;
}

static inline uint32_t f16_of_float(float x)
{
    const uint32_t bits = bits_of_float(x), magnitude = bits & 0x7fffffff,
                   sign = bits >> 16 & 0x8000;
    const uint32_t finite = narrow_of_float(magnitude, 10, -14);
    const uint32_t most = finite < 0x7c00 ? finite : 0x7c00;
    return x != x ? 0x7fff : sign | (magnitude >= 0x7f800000 ? 0x7c00 : most);
}

/* No infinity: what is above 448, the largest, becomes that. */
static inline uint32_t e4m3_of_float(float x)
{
    const uint32_t bits = bits_of_float(x), magnitude = bits & 0x7fffffff, sign = bits >> 24 & 0x80;
    const uint32_t finite = narrow_of_float(magnitude, 3, -6);
    const uint32_t most = magnitude < 0x43e00000 ? finite : 0x7e; /* 448 */
    return x != x ? 0x7f : sign | most;
}

#endif
