/* SPDX-License-Identifier: Apache-2.0 */
#include "glu.h"

static real dot(const real *a, const real *b, int32_t count)
{
    real sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

void NJ_REF(gemm_glu)(int ACT, real *act, real *gu, const real *x, const real *w, int32_t N,
                      int32_t I, int32_t C, int32_t P)
{
    (void)P;
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        for (int32_t i = 0; i < I; i++) {
            const int64_t up_row = (int64_t)I + i, at = 2 * (int64_t)n * I + i;
            const real gate = dot(x + (int64_t)n * C, w + (int64_t)i * C, C);
            const real up = dot(x + (int64_t)n * C, w + up_row * C, C);
            act[(int64_t)n * I + i] = gate * up * glu_weight(ACT, gate);
            if (gu) {
                gu[at] = gate;
                gu[at + I] = up;
            }
        }
    }
}
