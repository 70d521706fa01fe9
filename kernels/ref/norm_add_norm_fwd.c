/* SPDX-License-Identifier: Apache-2.0 */
#include "normed_row.h"

void NJ_REF(norm_add_norm_fwd)(real *y, real *s, real *rstd, real *b_rstd, const real *x,
                               const real *b, const real *g, const real *w, int32_t N, int32_t C,
                               float eps, float eps_b, float offset, float offset_b)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const int64_t row = (int64_t)n * C;
        real normed[C_MAX];
        b_rstd[n] = normed_row(normed, b + row, g, C, eps_b, offset_b);
        for (int32_t c = 0; c < C; c++)
            s[row + c] = x[row + c] + normed[c];
        if (y)
            rstd[n] = normed_row(y + row, s + row, w, C, eps, offset);
    }
}
