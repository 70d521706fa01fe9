/* SPDX-License-Identifier: Apache-2.0 */
#include "sigmoid.h"

void NJ_REF(expert_glu_bwd)(real *dgu, real *act, real *dweight, const real *d_of, const real *gu,
                            const real *weight, const int32_t *place, const int32_t *chosen,
                            const real *dy, const real *bias, int32_t N, int32_t E, int32_t J,
                            int32_t I, int32_t C, float limit, float alpha)
{
    const real most = limit > 0 ? (real)limit : (real)INFINITY;
    const real slope = limit > 0 ? (real)alpha : 1, added = limit > 0 ? 1 : 0;
    (void)E;
#pragma omp parallel for
    for (int64_t pair = 0; pair < (int64_t)N * J; pair++) {
        const int64_t n = pair / J, p = place[pair];
        real sum = 0;
        if (p < 0) {
            dweight[pair] = 0;
            continue;
        }
        const real *gate = gu + p * 2 * I, *up = gate + I, *d = d_of + p * I;
        real *dgate = dgu + p * 2 * I, *dup = dgate + I, *out = act + p * I;
        for (int32_t i = 0; i < I; i++) {
            const int bound_gate = gate[i] > most, bound_up = up[i] > most || up[i] < -most;
            const real g = bound_gate ? most : gate[i];
            const real u = (bound_up ? up[i] > 0 ? most : -most : up[i]) + added;
            const real z = sigmoid(slope * g), a = g * z * u;
            const real its = weight[pair] * d[i];
            sum += d[i] * a;
            dgate[i] = bound_gate ? 0 : its * u * z * (1 + slope * g * (1 - z));
            dup[i] = bound_up ? 0 : its * g * z;
            out[i] = weight[pair] * a;
        }
        for (int32_t c = 0; bias && c < C; c++)
            sum += dy[n * C + c] * bias[chosen[pair] * (int64_t)C + c];
        dweight[pair] = sum;
    }
}
