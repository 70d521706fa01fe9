// SPDX-License-Identifier: Apache-2.0
#include "step_state.glsl"

void nj_adamw()
{
    const float lr = state.v[STEP_LR], grad_scale = state.v[STEP_GRAD_SCALE];
    const float bias1 = state.v[STEP_BIAS1], bias2 = state.v[STEP_BIAS2];
    if (state.v[STEP_SKIP] != 0.0)
        return;
    for (int64_t i = flat_thread(); i < n; i += flat_threads()) {
        nj_f32 w_i = from(w, i), m_i = from(m, i), v_i = from(v, i);
        const float h = from(g, i).v[0] * grad_scale, before = w_i.v[0];
        const float first = beta1 * m_i.v[0] + (1.0 - beta1) * h;
        const float second = beta2 * v_i.v[0] + (1.0 - beta2) * h * h;
        const float decay = i < n_decay ? weight_decay : 0.0;
        const float after =
            before - lr * (first / bias1 / (sqrt(second / bias2) + eps) + decay * before);
        m_i.v[0] = first;
        v_i.v[0] = second;
        w_i.v[0] = after;
        if (given(p))
            put(from_t(p, i), 0, after);
    }
}
