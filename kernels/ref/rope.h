/* SPDX-License-Identifier: Apache-2.0
 *
 * rope.h: a RoPE rotation. The rounding of its angle is part of the specification: the product of position and
 * frequency is rounded to float32, as in the kernels and in transformers, even where the rest is double. At position
 * 32767 the rounding is 1e-3 radians, and models are trained with the rounded angles.
 */
#ifndef NOJIT_REF_ROPE_H
#define NOJIT_REF_ROPE_H

#include "ref.h"

/* Compute cosine and sine of a pair's angle, times the amplitude; a pair with frequency 0 has none. */
static inline void rope_turn(real *co, real *si, int32_t pos, real inv_freq, float amplitude)
{
    const real angle = (float)pos * (float)inv_freq;
    const real length = inv_freq != 0 ? (real)amplitude : 1;
    *co = length * cos(angle);
    *si = length * sin(angle);
}

/* Compute those of the `half` pairs of a head. */
static inline void rope_turns(real *co, real *si, int32_t pos, const real *inv_freq, int32_t half,
                              float amplitude)
{
    for (int32_t i = 0; i < half; i++)
        rope_turn(co + i, si + i, pos, inv_freq[i], amplitude);
}

/* Rotate an element of a head and its partner, half a head later. */
static inline void rope_pair(real *lo, real *hi, real co, real si)
{
    const real a = *lo, b = *hi;
    *lo = a * co - b * si;
    *hi = b * co + a * si;
}

/* Apply the transpose, which turns the gradient of a rotated pair into that of the pair. */
static inline void rope_pair_back(real *lo, real *hi, real co, real si)
{
    const real a = *lo, b = *hi;
    *lo = a * co + b * si;
    *hi = b * co - a * si;
}

#endif
