/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(expert_gemm)(real *y, const real *x, const int32_t *row, const real *w,
                         const real *bias, const int32_t *first, int32_t P, int32_t R, int32_t E,
                         int32_t M, int32_t C, int32_t ld, int32_t G)
{
    (void)P, (void)R, (void)G;
    for (int32_t e = 0; e < E; e++) {
#pragma omp parallel for
        for (int32_t p = first[e]; p < first[e + 1]; p++) {
            const real *from = x + (int64_t)(row ? row[p] : p) * C;
            for (int32_t m = 0; m < M; m++) {
                const int64_t at = (int64_t)e * M + m;
                real sum = 0;
                for (int32_t c = 0; c < C; c++)
                    sum += from[c] * w[at * C + c];
                y[(int64_t)p * ld + m] = sum + (bias ? bias[at] : 0);
            }
        }
    }
}
