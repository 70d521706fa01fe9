/* SPDX-License-Identifier: Apache-2.0 */
#include "e4m3.h"
#include "normed_row.h"

void NJ_REF(add_rmsnorm_quantize)(e4m3 *q, real *scale, real *s, real *rstd, const real *x,
                                  const real *b, const real *w, int32_t N, int32_t C, float eps,
                                  float offset)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const int64_t row = (int64_t)n * C;
        real y[C_MAX];
        for (int32_t c = 0; c < C; c++)
            s[row + c] = x[row + c] + b[row + c];
        rstd[n] = normed_row(y, s + row, w, C, eps, offset);
        quantize_row(q + row, scale + n, y, C);
    }
}
