/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(expert_gemm_dw)(real *dw, const real *dy, const int32_t *dy_row, const real *x,
                            const int32_t *x_row, const int32_t *first, int32_t P, int32_t Y,
                            int32_t X, int32_t E, int32_t M, int32_t C, int32_t Q, int32_t G,
                            int32_t add)
{
    (void)P, (void)Y, (void)X, (void)G;
    for (int32_t e = 0; e < E; e++) {
#pragma omp parallel for
        for (int32_t k = 0; k < Q * M; k++) {
            const int32_t q = k / M;
            real *row = dw + (((int64_t)q * E + e) * M + k % M) * C;
            for (int32_t c = 0; c < C; c++) {
                real *to = row + c;
                real sum = add ? *to : 0;
                for (int32_t p = first[e]; p < first[e + 1]; p++)
                    sum += dy[(int64_t)(dy_row ? dy_row[p] : p) * Q * M + k] *
                           x[(int64_t)(x_row ? x_row[p] : p) * C + c];
                *to = sum;
            }
        }
    }
}
