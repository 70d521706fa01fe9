/* SPDX-License-Identifier: Apache-2.0 */
#include "e4m3.h"

void NJ_REF(quantize_rows)(e4m3 *q, real *scale, real *top, const real *x, int32_t N, int32_t C)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++)
        quantize_row(q + (int64_t)n * C, scale + n, x + (int64_t)n * C, C);
    keep_top(top, scale, N);
}
