/* SPDX-License-Identifier: Apache-2.0
 *
 * float8.h: the numbers that a byte of E4M3 or E5M2 stands for (https://arxiv.org/abs/2209.05433).
 */
#ifndef NOJIT_FLOAT8_H
#define NOJIT_FLOAT8_H

#include "base/float16.h"

/* E4M3: 4 bits of exponent, 3 of fraction. All of them set are a NaN, and there is no infinity. */
static inline float f32_from_e4m3(uint8_t x)
{
    const uint32_t sign = (uint32_t)(x & 0x80u) << 24, mag = x & 0x7fu;
    if (mag == 0x7fu)
        return float_from_bits(sign | 0x7fc00000u);
    if (mag < 8) /* subnormal: mag * 2^-9 is exact */
        return float_from_bits(sign | float_bits((float)mag * 0x1p-9f));
    return float_from_bits(sign | ((mag << 20) + 0x3c000000u));
}

/* E5M2: 5 bits of exponent, 2 of fraction; the upper half of a float16. */
static inline float f32_from_e5m2(uint8_t x)
{
    return f32_from_f16((uint16_t)(x << 8));
}

#endif
