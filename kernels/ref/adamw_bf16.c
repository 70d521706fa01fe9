/* SPDX-License-Identifier: Apache-2.0 */
#include "bf16.h"

void NJ_REF(adamw_bf16)(real *w, bf16 *m, bf16 *v, const real *g, const real *state, int64_t n,
                        int64_t n_decay, int64_t first, float beta1, float beta2, float eps,
                        float weight_decay, int32_t seed_low, int32_t seed_high)
{
    const real lr = state[NJ_STEP_LR], grad_scale = state[NJ_STEP_GRAD_SCALE];
    const real bias1 = state[NJ_STEP_BIAS1], bias2 = state[NJ_STEP_BIAS2];
    const real b1 = (real)beta1, b2 = (real)beta2;
    const uint32_t update = (uint32_t)state[NJ_STEP_UPDATES];
    const uint32_t key[2] = {(uint32_t)seed_low, (uint32_t)seed_high};
    if (state[NJ_STEP_SKIP] != 0)
        return;
#pragma omp parallel for
    for (int64_t block = 0; block < (n + 3) / 4; block++) {
        const uint64_t counter = (uint64_t)(first / 4 + block);
        uint32_t of_both[4], of_second[4];
        philox(counter, update, 1, key[0], key[1], of_both);
        philox(counter, update, 2, key[0], key[1], of_second);
        for (int64_t i = 4 * block; i < 4 * block + 4 && i < n; i++) {
            const int64_t k = i % 4;
            const real h = g[i] * grad_scale;
            const real decay = i < n_decay ? (real)weight_decay : 0;
            const real m1 = b1 * from_bf16(m[i]) + (1 - b1) * h;
            const real v1 = b2 * from_bf16(v[i]) + (1 - b2) * h * h;
            const real w1 =
                w[i] - lr * (m1 / bias1 / (sqrt(v1 / bias2) + (real)eps) + decay * w[i]);
            w[i] = round_at_random((float)w1, of_both[k] & 0xffff);
            m[i] = to_bf16(round_at_random((float)m1, of_both[k] >> 16));
            v[i] = to_bf16(round_at_random((float)v1, of_second[k] & 0xffff));
        }
    }
}
