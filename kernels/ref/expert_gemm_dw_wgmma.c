/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(expert_gemm_dw_wgmma)(real *dw, const real *dy, const int32_t *dy_row, const real *x,
                                  const int32_t *x_row, const int32_t *first, int32_t P, int32_t Y,
                                  int32_t X, int32_t E, int32_t M, int32_t C, int32_t Q, int32_t G,
                                  int32_t add)
{
    const int64_t ld = (int64_t)Q * M;
    (void)P, (void)Y, (void)X, (void)G;
#pragma omp parallel for
    for (int64_t row = 0; row < ld * E; row++) {
        const int64_t e = row / M % E, column = row / M / E * M + row % M;
        real *to = dw + row * C;
        for (int32_t c = 0; c < C && !add; c++)
            to[c] = 0;
        for (int32_t p = first[e]; p < first[e + 1]; p++) {
            const real d = dy[(dy_row ? dy_row[p] : p) * ld + column];
            const real *from = x + (int64_t)(x_row ? x_row[p] : p) * C;
            for (int32_t c = 0; c < C; c++)
                to[c] += d * from[c];
        }
    }
}
