/* SPDX-License-Identifier: Apache-2.0 */
#include "normed_row.h"

void NJ_REF(add_rmsnorm_fwd)(real *y, real *s, real *rstd, const real *x, const real *b,
                             const real *w, int32_t N, int32_t C, float eps, float offset)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const int64_t row = (int64_t)n * C;
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int32_t c = 0; c < C; c++) {
            const real v = x[row + c] + b[row + c];
            s[row + c] = v;
            sum += v * v;
        }
        const real r = 1 / sqrt(sum / (real)C + (real)eps);
        rstd[n] = r;
#pragma omp simd
        for (int32_t c = 0; c < C; c++)
            y[row + c] = s[row + c] * r * norm_gain(w, c, offset);
    }
}
