/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16.h: bfloat16 arrays, on every arch, and stochastic rounding to bfloat16. Both builds of a reference round: in
 * double, an array holds the values of the bits that it holds in float.
 */
#ifndef NOJIT_REF_BF16_H
#define NOJIT_REF_BF16_H

#include "philox.h"

/* Round to one of the two neighbouring bfloat16 numbers: away from zero with a probability equal to the part cut off,
 * in units of the last digit kept. Adding 16 random bits below that digit carries into it with that probability. */
static inline float round_at_random(float x, uint32_t random16)
{
    uint32_t bits;
    if (isnan(x)) /* NaN must not carry into a number */
        return x;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + random16) & 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#ifdef NJ_REAL_DOUBLE

typedef double bf16;

static inline real from_bf16(bf16 x)
{
    return x;
}

static inline bf16 to_bf16(float x)
{
    return (double)x;
}

#else

typedef uint16_t bf16;

static inline real from_bf16(bf16 x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Return the bits of x, a bfloat16 number or NaN. */
static inline bf16 to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    /* the bits of a NaN may all be in the lower half */
    return (bf16)(bits >> 16 | (isnan(x) ? 0x40u : 0));
}

#endif

#endif
