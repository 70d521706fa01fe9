/* SPDX-License-Identifier: Apache-2.0 */
#include "e4m3.h"
#include "normed_row.h"

void NJ_REF(rmsnorm_quantize)(e4m3 *q, real *scale, real *top, real *rstd, const real *x,
                              const real *w, int32_t N, int32_t C, float eps, float offset)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const int64_t row = (int64_t)n * C;
        real y[C_MAX];
        rstd[n] = normed_row(y, x + row, w, C, eps, offset);
        quantize_row(q + row, scale + n, y, C);
    }
    keep_top(top, scale, N);
}
