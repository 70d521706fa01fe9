/* SPDX-License-Identifier: Apache-2.0
 *
 * float16.h: conversions of bfloat16 and float16 from and to float, rounded to nearest even, in integer arithmetic. NaN
 * stays NaN and keeps its sign; a value too large for float16 becomes infinity.
 */
#ifndef NOJIT_FLOAT16_H
#define NOJIT_FLOAT16_H

#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float float_from_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint16_t bf16_from_f32(float x)
{
    uint32_t u = float_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(u >> 16 |
                          0x40u); /* quiet: dropping the low bits cannot turn NaN into infinity */
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

static inline float f32_from_bf16(uint16_t x)
{
    return float_from_bits((uint32_t)x << 16);
}

static inline uint16_t f16_from_f32(float x)
{
    uint32_t u = float_bits(x);
    uint32_t sign = u >> 16 & 0x8000u, mag = u & 0x7fffffffu;
    if (mag > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | (mag >> 13 & 0x1ffu));
    if (mag >= 0x477ff000u) /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (mag < 0x38800000u) { /* below 2^-14: adding 0.5 aligns the last float16 bit with the last
                                float bit */
        float aligned = float_from_bits(mag) + 0.5f;
        return (uint16_t)(sign | (float_bits(aligned) - 0x3f000000u));
    }
    /* the carry into the exponent is intended */
    uint32_t rounded = mag + 0xfffu + (mag >> 13 & 1u);
    return (uint16_t)(sign | (rounded - 0x38000000u) >> 13);
}

static inline float f32_from_f16(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000u) << 16, mag = x & 0x7fffu;
    if (mag >= 0x7c00u)
        return float_from_bits(sign | 0x7f800000u | (mag & 0x3ffu) << 13);
    if (mag < 0x400u) /* subnormal: mag * 2^-24 is exact */
        return float_from_bits(sign | float_bits((float)mag * 0x1p-24f));
    return float_from_bits(sign | ((mag << 13) + 0x38000000u));
}

#endif
