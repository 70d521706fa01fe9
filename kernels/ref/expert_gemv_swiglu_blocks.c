/* SPDX-License-Identifier: Apache-2.0 */
#include "block_dot.h"
#include "glu_clamped.h"

void NJ_REF(expert_gemv_swiglu_blocks)(int TYPE, real *act, const real *x, const int32_t *gate,
                                       const int32_t *up, const real *bias, const int32_t *chosen,
                                       int32_t N, int32_t J, int32_t E, int32_t I, int32_t C,
                                       float limit, float alpha)
{
#pragma omp parallel for collapse(2)
    for (int32_t pair = 0; pair < N * J; pair++) {
        for (int32_t i = 0; i < I; i++) {
            const int32_t e = chosen[pair];
            const int64_t row = (int64_t)e * I + i, up_row = (int64_t)E * I + row;
            const real *from = x + (int64_t)(pair / J) * C;
            real *out = act + (int64_t)pair * I + i;
            if (e < 0) {
                *out = 0;
                continue;
            }
            const real g = block_dot(TYPE, gate, row, from, C) + (bias ? bias[row] : 0);
            const real u = block_dot(TYPE, up, row, from, C) + (bias ? bias[up_row] : 0);
            *out = glu_clamped(g, u, limit, alpha);
        }
    }
}
