/* SPDX-License-Identifier: Apache-2.0 */
#include "gemv.h"

void NJ_REF(gemv_norm)(int M, real *y, const real *x, const real *g, const real *w, const real *b,
                       int32_t N, int32_t C, int32_t ld, float eps, float offset)
{
    real r[GEMV_ROWS];
    reciprocal_roots(r, x, M, C, eps);
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++)
        for (int64_t m = 0; m < M; m++)
            y[m * ld + n] =
                normed_dot(x + m * C, r[m], g, w + (int64_t)n * C, C, offset) + (b ? b[n] : 0);
}
