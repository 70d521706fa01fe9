/* SPDX-License-Identifier: Apache-2.0
 *
 * normed_row.h: RMS norm of a row, and its gain.
 */
#ifndef NOJIT_REF_NORMED_ROW_H
#define NOJIT_REF_NORMED_ROW_H

#include "ref.h"

enum { C_MAX = 10240 };

/* Return the gain of channel c, which is the offset alone if w is NULL. */
static inline real norm_gain(const real *w, int32_t c, float offset)
{
    return (w ? w[c] : 0) + (real)offset;
}

/* Compute y = x r (w + offset). Return r, the reciprocal root. */
static inline real normed_row(real *y, const real *x, const real *w, int32_t C, float eps,
                              float offset)
{
    real sum = 0;
    for (int32_t c = 0; c < C; c++)
        sum += x[c] * x[c];
    const real r = 1 / sqrt(sum / (real)C + (real)eps);
    for (int32_t c = 0; c < C; c++)
        y[c] = x[c] * r * norm_gain(w, c, offset);
    return r;
}

#endif
