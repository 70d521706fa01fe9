/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

enum { LOSS_SCALE_MAX = 65536 };

/* Return 1 - beta^updates without cancellation. */
static real bias_correction(float beta, real updates)
{
    return -expm1(updates * log((real)beta));
}

static void adapt_loss_scale(real *state, int skip, int32_t growth)
{
    real *scale = &state[NJ_STEP_LOSS_SCALE], *good = &state[NJ_STEP_GOOD_STEPS];
    if (skip) {
        *good = 0;
        *scale = fmax(*scale / 2, (real)1);
        return;
    }
    *good += 1;
    if (*good >= (real)growth) {
        *good = 0;
        *scale = fmin(*scale * 2, (real)LOSS_SCALE_MAX);
    }
}

void NJ_REF(clip_scale)(real *state, const real *part, int32_t P, float max_norm, float beta1,
                        float beta2, int32_t growth)
{
    const real inv_scale = 1 / state[NJ_STEP_LOSS_SCALE];
    real sum = 0;
    for (int32_t p = 0; p < P; p++)
        sum += part[p];
    const real norm = sqrt(sum) * inv_scale;
    const int skip = !isfinite(norm);

    state[NJ_STEP_GRAD_NORM] = norm;
    state[NJ_STEP_SKIP] = (real)skip;
    state[NJ_STEP_GRAD_SCALE] = inv_scale;
    if (skip) {
        state[NJ_STEP_SKIPPED] += 1;
    } else {
        const real updates = state[NJ_STEP_UPDATES] + 1;
        state[NJ_STEP_UPDATES] = updates;
        state[NJ_STEP_BIAS1] = bias_correction(beta1, updates);
        state[NJ_STEP_BIAS2] = bias_correction(beta2, updates);
        if (max_norm > 0)
            state[NJ_STEP_GRAD_SCALE] *= fmin((real)1, (real)max_norm / (norm + (real)1e-6));
    }
    if (growth > 0)
        adapt_loss_scale(state, skip, growth);
}
