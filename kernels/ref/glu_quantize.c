/* SPDX-License-Identifier: Apache-2.0 */
#include "e4m3.h"
#include "glu.h"

enum { I_MAX = 30720 };

void NJ_REF(glu_quantize)(int ACT, e4m3 *q, real *scale, const real *gu, int32_t N, int32_t I)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const real *gate = gu + (int64_t)n * 2 * I, *up = gate + I;
        real y[I_MAX];
        for (int32_t i = 0; i < I; i++)
            y[i] = gate[i] * glu_weight(ACT, gate[i]) * up[i];
        quantize_row(q + (int64_t)n * I, scale + n, y, I);
    }
}
