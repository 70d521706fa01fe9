/* SPDX-License-Identifier: Apache-2.0 */
#include "normed_row.h"

void NJ_REF(rmsnorm_fwd)(real *y, real *rstd, const real *x, const real *w, int32_t N, int32_t C,
                         float eps, float offset)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const real *row = x + (int64_t)n * C;
        real *out = y + (int64_t)n * C;
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int32_t c = 0; c < C; c++)
            sum += row[c] * row[c];
        const real r = 1 / sqrt(sum / (real)C + (real)eps);
        rstd[n] = r;
#pragma omp simd
        for (int32_t c = 0; c < C; c++)
            out[c] = row[c] * r * norm_gain(w, c, offset);
    }
}
