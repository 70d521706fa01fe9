/* SPDX-License-Identifier: Apache-2.0
 *
 * float8.h: values of E4M3 and E5M2 bytes (https://arxiv.org/abs/2209.05433).
 */
#ifndef NOJIT_FLOAT8_H
#define NOJIT_FLOAT8_H

#include "base/float16.h"

/* Return the value of an E4M3 byte: 4 exponent bits, 3 fraction bits. All seven set is NaN; there is no infinity. */
static inline float f32_from_e4m3(uint8_t x)
{
    const uint32_t sign = (uint32_t)(x & 0x80u) << 24, mag = x & 0x7fu;
    if (mag == 0x7fu)
        return float_from_bits(sign | 0x7fc00000u);
    if (mag < 8) /* subnormal: mag * 2^-9 is exact */
        return float_from_bits(sign | float_bits((float)mag * 0x1p-9f));
    return float_from_bits(sign | ((mag << 20) + 0x3c000000u));
}

/* Return the value of an E5M2 byte, the upper half of a float16: 5 exponent bits, 2 fraction bits. */
static inline float f32_from_e5m2(uint8_t x)
{
    return f32_from_f16((uint16_t)(x << 8));
}

#endif
