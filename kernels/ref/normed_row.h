/* SPDX-License-Identifier: Apache-2.0
 *
 * normed_row.h: RMS norm of a row.
 */
#ifndef NOJIT_REF_NORMED_ROW_H
#define NOJIT_REF_NORMED_ROW_H

#include "ref.h"

enum { C_MAX = 10240 };

/* Compute y = x r w. Return r, the reciprocal root. */
static inline real normed_row(real *y, const real *x, const real *w, int32_t C, float eps)
{
    real sum = 0;
    for (int32_t c = 0; c < C; c++)
        sum += x[c] * x[c];
    const real r = 1 / sqrt(sum / (real)C + (real)eps);
    for (int32_t c = 0; c < C; c++)
        y[c] = x[c] * r * w[c];
    return r;
}

#endif
