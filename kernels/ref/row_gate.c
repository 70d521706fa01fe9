/* SPDX-License-Identifier: Apache-2.0 */
#include "sigmoid.h"

void NJ_REF(row_gate)(real *y, const real *d, const real *x, const real *w, int32_t N, int32_t I,
                      int32_t C)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const real *row = x + (int64_t)n * C;
        const int64_t first = (int64_t)n * I;
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int32_t c = 0; c < C; c++)
            sum += row[c] * w[c];
        const real gate = sigmoid(sum);
        for (int64_t at = first; at < first + I; at++)
            y[at] = d[at] * gate;
    }
}
