// SPDX-License-Identifier: Apache-2.0
#include "step_state.glsl"

const float LOSS_SCALE_MAX = 65536.0;

// Return 1 - beta^updates without cancellation.
float bias_correction(float beta, float updates)
{
    return -nj_expm1(updates * nj_log(beta));
}

void adapt_loss_scale(bool skip)
{
    const float scale = state.v[STEP_LOSS_SCALE], good = state.v[STEP_GOOD_STEPS] + 1.0;
    const bool grows = !skip && good >= float(growth);
    state.v[STEP_GOOD_STEPS] = skip || grows ? 0.0 : good;
    if (skip)
        state.v[STEP_LOSS_SCALE] = max(scale / 2.0, 1.0);
    else if (grows)
        state.v[STEP_LOSS_SCALE] = min(scale * 2.0, LOSS_SCALE_MAX);
}

void nj_clip_scale()
{
    float sum = 0.0;
    for (int p = thread(); p < P; p += NJ_THREADS)
        sum += part.v[p];
    const float total = block_sum(sum);
    if (thread() != 0)
        return;
    const float inv_scale = 1.0 / state.v[STEP_LOSS_SCALE], norm = sqrt(total) * inv_scale;
    const bool skip = !is_finite(norm);
    state.v[STEP_GRAD_NORM] = norm;
    state.v[STEP_SKIP] = skip ? 1.0 : 0.0;
    state.v[STEP_GRAD_SCALE] = inv_scale;
    if (skip) {
        state.v[STEP_SKIPPED] += 1.0;
    } else {
        const float updates = state.v[STEP_UPDATES] + 1.0;
        state.v[STEP_UPDATES] = updates;
        state.v[STEP_BIAS1] = bias_correction(beta1, updates);
        state.v[STEP_BIAS2] = bias_correction(beta2, updates);
        if (max_norm > 0.0)
            state.v[STEP_GRAD_SCALE] = inv_scale * min(1.0, max_norm / (norm + 1e-6));
    }
    if (growth > 0)
        adapt_loss_scale(skip);
}
