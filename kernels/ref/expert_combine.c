/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(expert_combine)(real *y, const real *d, const real *weight, const int32_t *place,
                            const real *addend, int32_t N, int32_t J, int32_t C, int32_t P)
{
    (void)P;
#pragma omp parallel for
    for (int64_t n = 0; n < N; n++) {
        for (int32_t c = 0; c < C; c++) {
            real sum = addend ? addend[n * C + c] : 0;
            for (int32_t j = 0; j < J; j++) {
                const int64_t from = place[n * J + j];
                if (from >= 0)
                    sum += (weight ? weight[n * J + j] : 1) * d[from * C + c];
            }
            y[n * C + c] = sum;
        }
    }
}
