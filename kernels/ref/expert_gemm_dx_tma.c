/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(expert_gemm_dx_tma)(real *dx, const real *dy, const int32_t *row, const real *w,
                                const int32_t *first, int32_t P, int32_t R, int32_t E, int32_t M,
                                int32_t C, int32_t Q, int32_t G)
{
    (void)P, (void)R, (void)G;
    for (int32_t e = 0; e < E; e++) {
#pragma omp parallel for
        for (int32_t p = first[e]; p < first[e + 1]; p++) {
            const int64_t from = row ? row[p] : p;
            for (int32_t c = 0; c < C; c++) {
                real sum = 0;
                for (int32_t k = 0; k < Q * M; k++)
                    sum += dy[from * Q * M + k] * w[((k / M * (int64_t)E + e) * M + k % M) * C + c];
                dx[(int64_t)p * C + c] = sum;
            }
        }
    }
}
