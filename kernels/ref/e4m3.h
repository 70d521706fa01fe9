/* SPDX-License-Identifier: Apache-2.0
 *
 * e4m3.h: rows as E4M3, each with its scale. In double nothing is rounded; the test does the rounding.
 */
#ifndef NOJIT_REF_E4M3_H
#define NOJIT_REF_E4M3_H

#include "ref.h"

#ifdef NJ_REAL_DOUBLE

typedef double e4m3;

static inline e4m3 to_e4m3(double x)
{
    return x;
}

static inline double from_e4m3(e4m3 x)
{
    return x;
}

#else

typedef uint8_t e4m3;

/* Round to nearest even. Values beyond 448 become 448; NaN becomes all ones. */
static inline e4m3 to_e4m3(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint8_t sign = (uint8_t)(bits >> 24 & 0x80);
    const float size = fabsf(x);
    if (!(size < 448))
        return sign | (size >= 448 ? 0x7e : 0x7f);
    if (size < 0x1p-6f) /* subnormal: steps of 2^-9; eight of them are the first normal number */
        return sign | (uint8_t)rintf(size * 0x1p9f);
    bits &= 0x7fffffff;
    bits += 0x7ffff + (bits >> 20 & 1);
    return sign | (uint8_t)((bits >> 20) - ((127 - 7) << 3));
}

static inline float from_e4m3(e4m3 x)
{
    const int exponent = x >> 3 & 15, fraction = x & 7;
    const float size =
        exponent ? ldexpf((float)(8 + fraction), exponent - 10) : ldexpf((float)fraction, -9);
    if ((x & 0x7f) == 0x7f)
        return NAN;
    return x & 0x80 ? -size : size;
}

#endif

/* Return the least power of two that is at least x > 0; infinity and NaN stay what they are. */
static inline real power_of_two(real x)
{
    int exponent;
    const real fraction = frexp(x, &exponent); /* in [1/2, 1) */
    return isfinite(x) ? ldexp((real)1, fraction == (real)0.5 ? exponent - 1 : exponent) : x;
}

/* Quantize a row of `count` elements and store its scale. */
static inline void quantize_row(e4m3 *q, real *scale, const real *x, int32_t count)
{
    real top = (real)0x1p-100;
    for (int32_t i = 0; i < count; i++)
        if (!(fabs(x[i]) <= top)) /* true for NaN, and for nothing after it */
            top = isnan(top) ? top : fabs(x[i]);
    *scale = power_of_two(top / 448);
    const real inverse = 1 / *scale;
    for (int32_t i = 0; i < count; i++)
        q[i] = to_e4m3(x[i] * inverse);
}

/* Raise top[0] to the largest of the scales of `rows` rows; do nothing if top is NULL. */
static inline void keep_top(real *top, const real *scale, int32_t rows)
{
    for (int32_t n = 0; top && n < rows; n++)
        if (!(scale[n] <= *top)) /* true for NaN, and for nothing after it */
            *top = isnan(*top) ? *top : scale[n];
}

#endif
