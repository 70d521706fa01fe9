/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(adamw)(real *p, real *w, real *m, real *v, const real *g, const real *state, int64_t n,
                   int64_t n_decay, float beta1, float beta2, float eps, float weight_decay)
{
    const real lr = state[NJ_STEP_LR], grad_scale = state[NJ_STEP_GRAD_SCALE];
    const real bias1 = state[NJ_STEP_BIAS1], bias2 = state[NJ_STEP_BIAS2];
    const real b1 = (real)beta1, b2 = (real)beta2;
    if (state[NJ_STEP_SKIP] != 0)
        return;
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++) {
        const real h = g[i] * grad_scale;
        const real decay = i < n_decay ? (real)weight_decay : 0;
        m[i] = b1 * m[i] + (1 - b1) * h;
        v[i] = b2 * v[i] + (1 - b2) * h * h;
        w[i] -= lr * (m[i] / bias1 / (sqrt(v[i] / bias2) + (real)eps) + decay * w[i]);
        if (p)
            p[i] = w[i];
    }
}
