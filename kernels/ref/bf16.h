/* SPDX-License-Identifier: Apache-2.0
 *
 * bf16.h: bfloat16 arrays, on every arch, and rounding to bfloat16 at random. Both builds of a
 * reference draw: in double an array holds the numbers that the bits of the other stand for.
 */
#ifndef NOJIT_REF_BF16_H
#define NOJIT_REF_BF16_H

#include "philox.h"

/* To a bfloat16 neighbour: away from zero with the probability that is the part cut off, in units
 * of the last digit kept. Random bits below it carry into it as often. */
static inline float round_at_random(float x, uint32_t random16)
{
    uint32_t bits;
    if (isnan(x)) /* must not carry into a number */
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

/* x is a bfloat16 number, or a NaN. */
static inline bf16 to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bf16)(bits >> 16 | (isnan(x) ? 0x40u : 0)); /* a NaN has its digits at the top */
}

#endif

#endif
