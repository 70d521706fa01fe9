/* SPDX-License-Identifier: Apache-2.0 */
#include "e4m3.h"
#include "glu.h"

enum { I_MAX = 30720 };

void NJ_REF(glu_bwd_quantize)(int ACT, e4m3 *dq, real *dscale, e4m3 *q, real *scale, real *dtop,
                              real *top, const real *dy, const real *gu, int32_t N, int32_t I)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const real *gate = gu + (int64_t)n * 2 * I, *up = gate + I, *d = dy + (int64_t)n * I;
        real dgu[2 * I_MAX], y[I_MAX];
        for (int32_t i = 0; i < I; i++) {
            const real z = glu_weight(ACT, gate[i]);
            y[i] = gate[i] * z * up[i];
            dgu[i] = d[i] * up[i] * glu_slope(ACT, gate[i], z);
            dgu[I + i] = d[i] * gate[i] * z;
        }
        quantize_row(dq + (int64_t)n * 2 * I, dscale + n, dgu, 2 * I);
        quantize_row(q + (int64_t)n * I, scale + n, y, I);
    }
    keep_top(dtop, dscale, N);
    keep_top(top, scale, N);
}
