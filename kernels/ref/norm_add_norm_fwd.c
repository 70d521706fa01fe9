/* SPDX-License-Identifier: Apache-2.0 */
#include "normed_row.h"

/* Return the reciprocal root of a row. The sum has the order of that of rmsnorm_fwd, so bits are the same. */
static real root_of(const real *x, int32_t C, float eps)
{
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int32_t c = 0; c < C; c++)
        sum += x[c] * x[c];
    return 1 / sqrt(sum / (real)C + (real)eps);
}

void NJ_REF(norm_add_norm_fwd)(real *y, real *s, real *rstd, real *b_rstd, const real *x,
                               const real *b, const real *g, const real *w, int32_t N, int32_t C,
                               float eps, float eps_b, float offset, float offset_b)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const int64_t row = (int64_t)n * C;
        const real q = root_of(b + row, C, eps_b);
        b_rstd[n] = q;
#pragma omp simd
        for (int32_t c = 0; c < C; c++)
            s[row + c] = x[row + c] + b[row + c] * q * norm_gain(g, c, offset_b);
        if (!y)
            continue;
        const real r = root_of(s + row, C, eps);
        rstd[n] = r;
#pragma omp simd
        for (int32_t c = 0; c < C; c++)
            y[row + c] = s[row + c] * r * norm_gain(w, c, offset);
    }
}
