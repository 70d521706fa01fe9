/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(bias_add)(real *y, const real *b, int32_t N, int32_t C)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        real *row = y + (int64_t)n * C;
#pragma omp simd
        for (int32_t c = 0; c < C; c++)
            row[c] += b[c];
    }
}
