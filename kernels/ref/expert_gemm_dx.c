/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(expert_gemm_dx)(real *dx, const real *dy, const int32_t *row, const real *w,
                            const int32_t *first, int32_t P, int32_t R, int32_t E, int32_t M,
                            int32_t C, int32_t Q, int32_t G)
{
    (void)P, (void)R, (void)G;
    for (int32_t e = 0; e < E; e++) {
#pragma omp parallel for
        for (int32_t p = first[e]; p < first[e + 1]; p++) {
            const real *from = dy + (int64_t)(row ? row[p] : p) * Q * M;
            real *to = dx + (int64_t)p * C;
            for (int32_t c = 0; c < C; c++)
                to[c] = 0;
            for (int32_t q = 0; q < Q; q++)
                for (int32_t m = 0; m < M; m++) {
                    const real *its = w + (((int64_t)q * E + e) * M + m) * C;
                    for (int32_t c = 0; c < C; c++)
                        to[c] += from[q * M + m] * its[c];
                }
        }
    }
}
