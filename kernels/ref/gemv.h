/* SPDX-License-Identifier: Apache-2.0
 *
 * gemv.h: code shared by the references of gemv_norm and gemv_norm_swiglu.
 */
#ifndef NOJIT_REF_GEMV_H
#define NOJIT_REF_GEMV_H

#include "ref.h"

enum { GEMV_ROWS = 16 };

/* Compute the reciprocal root of each of M <= GEMV_ROWS rows. */
static void reciprocal_roots(real *r, const real *x, int M, int32_t C, float eps)
{
    for (int m = 0; m < M; m++) {
        real sum = 0;
        for (int32_t c = 0; c < C; c++)
            sum += x[m * (int64_t)C + c] * x[m * (int64_t)C + c];
        r[m] = 1 / sqrt(sum / (real)C + (real)eps);
    }
}

/* Return the dot product of a row, normalized by r and g + offset, with a row of weights. */
static real normed_dot(const real *x, real r, const real *g, const real *w, int32_t C, float offset)
{
    real sum = 0;
    for (int32_t c = 0; c < C; c++)
        sum += x[c] * r * (g[c] + (real)offset) * w[c];
    return sum;
}

#endif
