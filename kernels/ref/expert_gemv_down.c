/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(expert_gemv_down)(real *y, const real *act, const real *w, const real *bias,
                              const int32_t *chosen, const real *weight, int32_t N, int32_t J,
                              int32_t E, int32_t I, int32_t C)
{
    (void)E;
#pragma omp parallel for collapse(2)
    for (int32_t n = 0; n < N; n++) {
        for (int32_t c = 0; c < C; c++) {
            real sum = 0;
            for (int32_t pair = n * J; pair < (n + 1) * J; pair++) {
                if (chosen[pair] < 0)
                    continue;
                const int64_t row = (int64_t)chosen[pair] * C + c;
                real one = bias ? bias[row] : 0;
                for (int32_t i = 0; i < I; i++)
                    one += act[(int64_t)pair * I + i] * w[row * I + i];
                sum += weight[pair] * one;
            }
            y[(int64_t)n * C + c] += sum;
        }
    }
}
