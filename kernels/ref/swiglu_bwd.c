/* SPDX-License-Identifier: Apache-2.0 */
#include "sigmoid.h"

void NJ_REF(swiglu_bwd)(real *dgu, real *y, const real *dy, const real *gu, int32_t N, int32_t I)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const real *gate = gu + (int64_t)n * 2 * I, *up = gate + I;
        const real *d = dy + (int64_t)n * I;
        real *act = y + (int64_t)n * I;
        real *dgate = dgu + (int64_t)n * 2 * I, *dup = dgate + I;
#pragma omp simd
        for (int32_t i = 0; i < I; i++) {
            const real g = gate[i], u = up[i], dact = d[i];
            const real z = sigmoid(g);
            act[i] = g * z * u;
            dgate[i] = dact * u * z * (1 + g * (1 - z));
            dup[i] = dact * g * z;
        }
    }
}
