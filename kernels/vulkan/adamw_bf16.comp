// SPDX-License-Identifier: Apache-2.0
#include "philox.glsl"
#include "step_state.glsl"

// Round to one of the two neighbouring bfloat16 numbers: away from zero with a probability equal to the part cut off.
// Adding random bits below the last digit kept carries into it with that probability.
float round_at_random(float x, uint random16)
{
    return is_nan(x) ? x : uintBitsToFloat((floatBitsToUint(x) + random16) & 0xffff0000u);
}

// Return element i of an array with two elements per word.
float pair_element(nj_i32 words, int64_t i)
{
    const uint both = uint(from_i32(words, i / 2).v[0]);
    return uintBitsToFloat((i & 1) == 0 ? both << 16 : both & 0xffff0000u);
}

uint upper_half(float x)
{
    // the bits of a NaN may all be in the lower half
    return floatBitsToUint(x) >> 16 | (is_nan(x) ? 0x40u : 0u);
}

// Store elements i, which is even, and i + 1. If the array ends between them, the rest of the word is kept.
void store_pair(nj_i32 words, int64_t i, uint low, uint high)
{
    nj_i32 to = from_i32(words, i / 2);
    to.v[0] = int(low | (i + 1 < n ? high << 16 : uint(to.v[0]) & 0xffff0000u));
}

void nj_adamw_bf16()
{
    const float lr = state.v[STEP_LR], grad_scale = state.v[STEP_GRAD_SCALE];
    const float bias1 = state.v[STEP_BIAS1], bias2 = state.v[STEP_BIAS2];
    const uint update = uint(state.v[STEP_UPDATES]);
    if (state.v[STEP_SKIP] != 0.0)
        return;
    for (int64_t b = flat_thread(); b < (n + 3) / 4; b += flat_threads()) {
        const uint64_t counter = uint64_t(first / 4 + b);
        const uvec4 of_both = philox(counter, update, 1u, uint(seed_low), uint(seed_high));
        const uvec4 of_second = philox(counter, update, 2u, uint(seed_low), uint(seed_high));
        uint m_bits[4], v_bits[4];
        for (int k = 0; k < 4; k++) {
            const int64_t i = 4 * b + k;
            m_bits[k] = v_bits[k] = 0u;
            if (i >= n)
                continue;
            nj_t w_i = from_t(w, i);
            const float h = from(g, i).v[0] * grad_scale, before = get(w_i, 0);
            const float m1 = beta1 * pair_element(m, i) + (1.0 - beta1) * h;
            const float v1 = beta2 * pair_element(v, i) + (1.0 - beta2) * h * h;
            const float decay = i < n_decay ? weight_decay : 0.0;
            const float w1 = before - lr * (m1 / bias1 / (sqrt(v1 / bias2) + eps) + decay * before);
            put(w_i, 0, round_at_random(w1, of_both[k] & 0xffffu));
            m_bits[k] = upper_half(round_at_random(m1, of_both[k] >> 16));
            v_bits[k] = upper_half(round_at_random(v1, of_second[k] & 0xffffu));
        }
        for (int k = 0; k < 4 && 4 * b + k < n; k += 2) {
            store_pair(m, 4 * b + k, m_bits[k], m_bits[k + 1]);
            store_pair(v, 4 * b + k, v_bits[k], v_bits[k + 1]);
        }
    }
}
