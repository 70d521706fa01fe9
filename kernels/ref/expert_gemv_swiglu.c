/* SPDX-License-Identifier: Apache-2.0 */
#include "glu_clamped.h"

static real dot(const real *a, const real *b, int32_t count)
{
    real sum = 0;
    for (int32_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

void NJ_REF(expert_gemv_swiglu)(real *act, const real *x, const real *w, const real *bias,
                                const int32_t *chosen, int32_t N, int32_t J, int32_t E, int32_t I,
                                int32_t C, float limit, float alpha)
{
#pragma omp parallel for collapse(2)
    for (int32_t pair = 0; pair < N * J; pair++) {
        for (int32_t i = 0; i < I; i++) {
            const int32_t e = chosen[pair];
            const real *row = x + (int64_t)(pair / J) * C;
            real *out = act + (int64_t)pair * I + i;
            if (e < 0) {
                *out = 0;
                continue;
            }
            const int64_t gate_row = (int64_t)e * I + i, up_row = (int64_t)(E + e) * I + i;
            const real gate = dot(row, w + gate_row * C, C) + (bias ? bias[gate_row] : 0);
            const real up = dot(row, w + up_row * C, C) + (bias ? bias[up_row] : 0);
            *out = glu_clamped(gate, up, limit, alpha);
        }
    }
}
