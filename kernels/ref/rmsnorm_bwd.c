/* SPDX-License-Identifier: Apache-2.0 */
#include "normed_row.h"

void NJ_REF(rmsnorm_bwd)(real *dx, real *dw_part, const real *dy, const real *x, const real *w,
                         const real *rstd, const real *dres, int32_t N, int32_t C, int32_t P,
                         float offset)
{
#pragma omp parallel for
    for (int32_t p = 0; p < P; p++) {
        real *dw = dw_part ? dw_part + (int64_t)p * C : NULL;
        if (dw)
            memset(dw, 0, (size_t)C * sizeof(*dw));
        for (int64_t n = p; n < N; n += P) {
            const int64_t row = n * C;
            const real r = rstd[n];
            real dot = 0;
#pragma omp simd reduction(+ : dot)
            for (int32_t c = 0; c < C; c++)
                dot += dy[row + c] * norm_gain(w, c, offset) * x[row + c] * r;
            const real mean = dot / (real)C;
#pragma omp simd
            for (int32_t c = 0; c < C; c++) {
                const real h = x[row + c] * r;
                const real g = dy[row + c];
                const real bypass = dres ? dres[row + c] : 0;
                if (dw)
                    dw[c] += g * h;
                dx[row + c] = bypass + r * (g * norm_gain(w, c, offset) - h * mean);
            }
        }
    }
}
