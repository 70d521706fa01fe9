/* SPDX-License-Identifier: Apache-2.0
 *
 * rope.h: the angle of a RoPE rotation. Its rounding is part of the specification: the product of position and
 * frequency is rounded to float32, as in the kernels and in transformers, even where the rest is double. At position
 * 32767 the rounding is 1e-3 radians, and models are trained with the rounded angles.
 */
#ifndef NOJIT_REF_ROPE_H
#define NOJIT_REF_ROPE_H

#include "ref.h"

static inline real rope_angle(int32_t pos, real inv_freq)
{
    return (float)pos * (float)inv_freq;
}

/* Rotate an element of a head and its partner, half a head later. */
static inline void rope_pair(real *lo, real *hi, real co, real si)
{
    const real a = *lo, b = *hi;
    *lo = a * co - b * si;
    *hi = b * co + a * si;
}

#endif
