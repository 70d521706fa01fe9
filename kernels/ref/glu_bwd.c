/* SPDX-License-Identifier: Apache-2.0 */
#include "glu.h"

void NJ_REF(glu_bwd)(int ACT, real *dgu, real *y, const real *dy, const real *gu, int32_t N,
                     int32_t I)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const real *gate = gu + (int64_t)n * 2 * I, *up = gate + I;
        const real *d = dy + (int64_t)n * I;
        real *act = y + (int64_t)n * I;
        real *dgate = dgu + (int64_t)n * 2 * I, *dup = dgate + I;
        for (int32_t i = 0; i < I; i++) {
            const real g = gate[i], u = up[i], dact = d[i];
            const real z = glu_weight(ACT, g);
            act[i] = g * z * u;
            dgate[i] = dact * u * glu_slope(ACT, g, z);
            dup[i] = dact * g * z;
        }
    }
}
