/* SPDX-License-Identifier: Apache-2.0 */
#include "glu.h"

void NJ_REF(glu_fwd)(int ACT, real *y, const real *gu, int32_t N, int32_t I)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const real *gate = gu + (int64_t)n * 2 * I, *up = gate + I;
        real *out = y + (int64_t)n * I;
        for (int32_t i = 0; i < I; i++)
            out[i] = gate[i] * glu_weight(ACT, gate[i]) * up[i];
    }
}
