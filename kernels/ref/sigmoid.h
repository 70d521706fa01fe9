/* SPDX-License-Identifier: Apache-2.0
 *
 * sigmoid.h: 1 / (1 + e^-x). In float32 it is arithmetic only, so that a loop over it is vectorized: with libm's expf,
 * the CPU backend would spend a fifth of a small model's training here.
 */
#ifndef NOJIT_REF_SIGMOID_H
#define NOJIT_REF_SIGMOID_H

#include "ref.h"

#ifdef NJ_REAL_DOUBLE

static inline real sigmoid(real x)
{
    return 1 / (1 + exp(-x));
}

#else

/* Return the sigmoid from e^x = 2^n e^r, |r| <= ln(2) / 2, for which Taylor's series of degree 7 is exact to float32.
 * Beyond +-87 the sigmoid is 0 or 1 to float32, so x is clamped there. */
static inline real sigmoid(real x)
{
    const float round = 0x1.8p23f; /* a float this large has no fraction left */
    float t = x < -87 ? -87 : x;
    t = t > 87 ? -87 : -t;
    const float shifted =
        t * 0x1.715476p0f + round; /* t / ln(2) as a whole number in the last bits */
    const float n = shifted - round;
    const float r = (t - n * 0x1.62e4p-1f) - n * 0x1.7f7d1cp-20f; /* ln(2) in two parts */
    float e = 1 + r * (1.0f / 7);
    e = 1 + r * (1.0f / 6) * e;
    e = 1 + r * (1.0f / 5) * e;
    e = 1 + r * (1.0f / 4) * e;
    e = 1 + r * (1.0f / 3) * e;
    e = 1 + r * (1.0f / 2) * e;
    e = 1 + r * e;
    /* In bits, because NaN cannot be converted to an integer; e is NaN in that case. */
    uint32_t bits;
    float power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23;
    memcpy(&power, &bits, sizeof power);
    return 1 / (1 + power * e);
}

#endif
#endif
