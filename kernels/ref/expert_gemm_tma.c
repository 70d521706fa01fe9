/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

static real dot(const real *a, const real *b, int32_t count)
{
    real sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

void NJ_REF(expert_gemm_tma)(real *y, const real *x, const int32_t *row, const real *w,
                             const real *bias, const int32_t *first, int32_t P, int32_t R,
                             int32_t E, int32_t M, int32_t C, int32_t ld, int32_t G)
{
    (void)P, (void)R, (void)G;
    for (int32_t e = 0; e < E; e++) {
#pragma omp parallel for
        for (int32_t p = first[e]; p < first[e + 1]; p++) {
            const int64_t from = row ? row[p] : p;
            for (int64_t m = 0; m < M; m++)
                y[(int64_t)p * ld + m] = dot(x + from * C, w + (e * (int64_t)M + m) * C, C) +
                                         (bias ? bias[e * (int64_t)M + m] : 0);
        }
    }
}
