/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.h: what the references of causal convolutions share.
 */
#ifndef NOJIT_REF_CONV_H
#define NOJIT_REF_CONV_H

#include "sigmoid.h"

struct conv {
    const real *x, *w, *bias, *gate_in; /* bias and gate_in may be NULL */
    const int32_t *doc_start;           /* NULL: a document for each sequence */
    int32_t S, X, L, ld;
};

static inline int32_t start(const struct conv *a, int32_t b, int32_t s)
{
    return a->doc_start ? a->doc_start[(int64_t)b * a->S + s] : 0;
}

/* Return the input of the taps: row s of sequence b, 0 before row `first`. */
static inline real conv_input(const struct conv *a, int32_t b, int32_t s, int32_t first, int32_t c)
{
    const int64_t at = ((int64_t)b * a->S + s) * a->ld + c;
    return s >= first ? a->x[at] * (a->gate_in ? a->gate_in[at] : 1) : 0;
}

/* Return the argument of the activation at row s of sequence b. */
static inline real conv_sum(const struct conv *a, int32_t b, int32_t s, int32_t c)
{
    const int32_t first = start(a, b, s);
    real sum = a->bias ? a->bias[c] : 0;
    for (int32_t t = 0; t < a->L; t++)
        sum += a->w[(int64_t)c * a->L + t] * conv_input(a, b, s - a->L + 1 + t, first, c);
    return sum;
}

static inline real conv_act(real h, int32_t act)
{
    return act ? h * sigmoid(h) : h;
}

/* Return the derivative of the activation. */
static inline real conv_slope(real h, int32_t act)
{
    const real z = sigmoid(h);
    return act ? z * (1 + h * (1 - z)) : 1;
}

#endif
