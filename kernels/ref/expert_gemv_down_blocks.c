/* SPDX-License-Identifier: Apache-2.0 */
#include "block_dot.h"

void NJ_REF(expert_gemv_down_blocks)(int TYPE, real *y, const real *act, const int32_t *w,
                                     const real *bias, const int32_t *chosen, const real *weight,
                                     int32_t N, int32_t J, int32_t E, int32_t I, int32_t C)
{
    (void)E;
#pragma omp parallel for collapse(2)
    for (int32_t n = 0; n < N; n++) {
        for (int32_t c = 0; c < C; c++) {
            real sum = 0;
            for (int32_t pair = n * J; pair < (n + 1) * J; pair++) {
                const int64_t row = (int64_t)chosen[pair] * C + c;
                if (chosen[pair] >= 0)
                    sum += weight[pair] * (block_dot(TYPE, w, row, act + (int64_t)pair * I, I) +
                                           (bias ? bias[row] : 0));
            }
            y[(int64_t)n * C + c] += sum;
        }
    }
}
