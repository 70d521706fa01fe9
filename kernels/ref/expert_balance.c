/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(expert_balance)(real *dprob, real *loss, const real *sums, const real *state, int32_t E,
                            int32_t J, float factor)
{
    const real *prob = sums, *count = sums + E;
    real rows = 0, products = 0;
    for (int32_t e = 0; e < E; e++) {
        rows += count[e] / (real)J;
        products += count[e] * prob[e];
    }
    const real share = rows > 0 ? (real)E / (rows * rows) : 0;
    *loss += share * products;
    for (int32_t e = 0; e < E; e++)
        dprob[e] = (real)factor * share * count[e] * state[NJ_STEP_LOSS_SCALE];
}
