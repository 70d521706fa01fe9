/* SPDX-License-Identifier: Apache-2.0
 *
 * e5m2.h: E5M2 numbers, the upper half of a float16, with stochastic rounding. Both builds of a reference round: in
 * double, an array holds the values of the bytes that it holds in float.
 */
#ifndef NOJIT_REF_E5M2_H
#define NOJIT_REF_E5M2_H

#include "ref.h"

/* Return the bits of the nearest float16, ties to even; NaN becomes all ones. */
static inline uint16_t float16_bits(float x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const float size = fabsf(x);
    int exponent;
    if (isnan(x))
        return 0x7fff;
    if (size >= 65520)
        return sign | 0x7c00;
    if (size < 0x1p-14f) /* subnormal: steps of 2^-24 */
        return sign | (uint16_t)rintf(size * 0x1p24f);
    const float fraction = frexpf(size, &exponent); /* in [1/2, 1) */
    return (uint16_t)(sign | (((exponent + 13) << 10) + (int)rintf(fraction * 2048)));
}

/* Round to one of the two neighbouring E5M2 numbers: away from zero with a probability equal to the lower half of the
 * float16, in 256ths. */
static inline uint8_t e5m2_at_random(float x, uint32_t random8)
{
    return isnan(x) ? 0x7f : (uint8_t)((float16_bits(x) + random8) >> 8);
}

static inline float e5m2_value(uint8_t bits)
{
    const int exponent = bits >> 2 & 31, fraction = bits & 3;
    float size =
        exponent ? ldexpf((float)(4 + fraction), exponent - 17) : ldexpf((float)fraction, -16);
    if (exponent == 31)
        size = fraction ? NAN : INFINITY;
    return bits & 0x80 ? -size : size;
}

#ifdef NJ_REAL_DOUBLE

typedef double e5m2;

static inline e5m2 to_e5m2_at_random(double x, uint32_t random8)
{
    return (double)e5m2_value(e5m2_at_random((float)x, random8));
}

#else

typedef uint8_t e5m2;

static inline e5m2 to_e5m2_at_random(float x, uint32_t random8)
{
    return e5m2_at_random(x, random8);
}

#endif

#endif
