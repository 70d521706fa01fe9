/* SPDX-License-Identifier: Apache-2.0 */
#include "kd_row.h"

void NJ_REF(kd_head)(real *s, real *kd, real *ce, real *entropy, real *agree, const real *t,
                     const int32_t *target, const real *state, int32_t M, int32_t V, int32_t Vs,
                     int32_t Vt, float tau, float ratio, float beta, float cap)
{
    const struct how how = {.tau = (real)tau,
                            .ratio = (real)ratio,
                            .beta = (real)beta,
                            .cap = (real)cap,
                            .scale = state[NJ_STEP_INV_VALID] * state[NJ_STEP_LOSS_SCALE]};
#pragma omp parallel for
    for (int32_t m = 0; m < M; m++) {
        const struct distilled r =
            distil_row(s + (int64_t)m * Vs, t ? t + (int64_t)m * Vt : NULL, target[m], V, Vs, &how);
        kd[m] = (real)r.kd;
        ce[m] = r.ce;
        entropy[m] = (real)r.entropy;
        agree[m] = r.agree;
    }
}
