/* SPDX-License-Identifier: Apache-2.0
 *
 * e4m3.h: rows as e4m3, each with its scale. In double nothing is rounded: rounding is the test's.
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

/* To nearest even; beyond 448 it is 448, and a NaN is all digits. */
static inline e4m3 to_e4m3(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint8_t sign = (uint8_t)(bits >> 24 & 0x80);
    const float size = fabsf(x);
    if (!(size < 448))
        return sign | (size >= 448 ? 0x7e : 0x7f);
    if (size < 0x1p-6f) /* subnormal: steps of 2^-9; the eighth is the first normal number */
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

/* The least power of two that is not below x > 0; infinity and NaN stay what they are. */
static inline real power_of_two(real x)
{
    int exponent;
    const real fraction = frexp(x, &exponent); /* from 1/2 on, below 1 */
    return isfinite(x) ? ldexp((real)1, fraction == (real)0.5 ? exponent - 1 : exponent) : x;
}

/* A row of count elements. */
static inline void quantize_row(e4m3 *q, real *scale, const real *x, int32_t count)
{
    real top = (real)0x1p-100;
    for (int32_t i = 0; i < count; i++)
        if (!(fabs(x[i]) <= top)) /* takes a NaN, and nothing after it */
            top = isnan(top) ? top : fabs(x[i]);
    *scale = power_of_two(top / 448);
    const real inverse = 1 / *scale;
    for (int32_t i = 0; i < count; i++)
        q[i] = to_e4m3(x[i] * inverse);
}

/* The largest of top[0] and the scales of so many rows; nothing to do without top. */
static inline void keep_top(real *top, const real *scale, int32_t rows)
{
    for (int32_t n = 0; top && n < rows; n++)
        if (!(scale[n] <= *top)) /* takes a NaN, and nothing after it */
            *top = isnan(*top) ? *top : scale[n];
}

#endif
