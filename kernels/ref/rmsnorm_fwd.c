/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(rmsnorm_fwd)(real *y, real *rstd, const real *x, const real *w, int32_t N, int32_t C,
                         float eps)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const real *row = x + (int64_t)n * C;
        real sum = 0;
        for (int32_t c = 0; c < C; c++)
            sum += row[c] * row[c];
        const real r = 1 / (real)sqrt(sum / C + (real)eps);
        rstd[n] = r;
        for (int32_t c = 0; c < C; c++)
            y[(int64_t)n * C + c] = row[c] * r * w[c];
    }
}
