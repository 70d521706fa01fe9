/* SPDX-License-Identifier: Apache-2.0
 *
 * glu.h: gated activations. Each is x times a weight of x; here are that weight and the derivative of the product.
 */
#ifndef NOJIT_REF_GLU_H
#define NOJIT_REF_GLU_H

#include "base/activation.h"
#include "sigmoid.h"

/* Return P(X <= x) for a standard normal X, with full precision in the tail. */
static inline real gelu_weight(real x)
{
    return (real)0.5 * erfc(x * (real)-0.70710678118654752);
}

static inline real gelu_slope(real x, real z)
{
    return z + x * (real)0.39894228040143268 * exp(x * x * (real)-0.5);
}

/* GELU with tanh: (1 + tanh(v)) / 2 is sigmoid(2 v), here with 2 v = x (A + B x^2). */
#define GELU_TANH_A ((real)1.5957691216057308) /* 2 sqrt(2 / pi) */
#define GELU_TANH_B ((real)0.044715 * GELU_TANH_A)

static inline real gelu_tanh_weight(real x)
{
    const real v = x * (GELU_TANH_A + GELU_TANH_B * x * x);
    /* the float sigmoid is cut there */
    return v < -87 && sizeof(real) == sizeof(float) ? 0 : sigmoid(v);
}

static inline real gelu_tanh_slope(real x, real z)
{
    const real square = x * x < 400 ? x * x : 400; /* beyond, z or 1 - z is 0 */
    return z + x * z * (1 - z) * (GELU_TANH_A + 3 * GELU_TANH_B * square);
}

static inline real glu_weight(int act, real x)
{
    if (act == NJ_SILU)
        return sigmoid(x);
    return act == NJ_GELU_TANH ? gelu_tanh_weight(x) : gelu_weight(x);
}

/* Return the derivative of x glu_weight(x), where z is the weight of x. */
static inline real glu_slope(int act, real x, real z)
{
    if (act == NJ_SILU)
        return z * (1 + x * (1 - z));
    return act == NJ_GELU_TANH ? gelu_tanh_slope(x, z) : gelu_slope(x, z);
}

#endif
