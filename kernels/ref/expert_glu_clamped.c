/* SPDX-License-Identifier: Apache-2.0 */
#include "glu_clamped.h"

void NJ_REF(expert_glu_clamped)(real *act, const real *gu, int32_t P, int32_t I, float limit,
                                float alpha)
{
#pragma omp parallel for
    for (int64_t p = 0; p < P; p++) {
        const real *gate = gu + p * 2 * I, *up = gate + I;
        for (int32_t i = 0; i < I; i++)
            act[p * I + i] = glu_clamped(gate[i], up[i], limit, alpha);
    }
}
