/* SPDX-License-Identifier: Apache-2.0 */
#include "sigmoid.h"

static real dot(const real *a, const real *b, int32_t count)
{
    real sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

void NJ_REF(expert_gemm_swiglu)(real *act, real *gu, const real *x, const int32_t *row,
                                const real *w, const int32_t *first, int32_t P, int32_t R,
                                int32_t E, int32_t I, int32_t C, int32_t G)
{
    (void)P, (void)R, (void)G;
    for (int32_t e = 0; e < E; e++) {
#pragma omp parallel for
        for (int64_t p = first[e]; p < first[e + 1]; p++) {
            const real *from = x + (row ? row[p] : p) * C;
            for (int32_t i = 0; i < I; i++) {
                const int64_t gate_row = (int64_t)e * I + i, up_row = ((int64_t)E + e) * I + i;
                const real gate = dot(from, w + gate_row * C, C), up = dot(from, w + up_row * C, C);
                act[p * I + i] = gate * up * sigmoid(gate);
                if (gu) {
                    gu[2 * p * I + i] = gate;
                    gu[(2 * p + 1) * I + i] = up;
                }
            }
        }
    }
}
