/* SPDX-License-Identifier: Apache-2.0 */
#include "conv.h"

void NJ_REF(conv_step)(real *y, real *state, const real *x, const real *w, const real *bias,
                       const real *gate_in, const real *gate_out, const int32_t *slot,
                       const int32_t *pos, int32_t R, int32_t X, int32_t L, int32_t ld, int32_t G,
                       int32_t act)
{
    (void)G;
#pragma omp parallel for
    for (int32_t r = 0; r < R; r++)
        for (int32_t c = 0; c < X && slot[r] >= 0; c++) {
            const int64_t at = (int64_t)r * ld + c;
            real *before = state + (int64_t)slot[r] * (L - 1) * X + c;
            real u[8], h = bias ? bias[c] : 0;
            for (int32_t t = 0; t < L - 1; t++)
                u[t] = pos[r] > 0 ? before[(int64_t)t * X] : 0;
            u[L - 1] = x[at] * (gate_in ? gate_in[at] : 1);
            for (int32_t t = 0; t < L; t++)
                h += w[(int64_t)c * L + t] * u[t];
            for (int32_t t = 0; t < L - 1; t++)
                before[(int64_t)t * X] = u[t + 1];
            y[(int64_t)r * X + c] = conv_act(h, act) * (gate_out ? gate_out[at] : 1);
        }
}
