// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"
#include "philox.cuh"

// Round to one of the two neighbouring bfloat16 numbers: away from zero with a probability equal to the part cut off,
// in units of the last digit kept. Adding 16 random bits below that digit carries into it with that probability.
static __device__ __forceinline__ float round_at_random(float x, uint32_t random)
{
    const float y = __uint_as_float((__float_as_uint(x) + random) & 0xffff0000u);
    return x == x ? y : x; // a NaN must not carry into a number
}

template <typename T>
static __device__ __forceinline__ void
adamw_bf16(T *w, __nv_bfloat16 *m, __nv_bfloat16 *v, const float *g, const float *state, int64_t n,
           int64_t n_decay, int64_t first, float beta1, float beta2, float eps, float weight_decay,
           int32_t seed_low, int32_t seed_high)
{
    if (state[NJ_STEP_SKIP] != 0)
        return;
    const float lr = state[NJ_STEP_LR], grad_scale = state[NJ_STEP_GRAD_SCALE];
    const float unbias1 = __fdividef(1.0f, state[NJ_STEP_BIAS1]);
    const float unbias2 = __fdividef(1.0f, state[NJ_STEP_BIAS2]);
    const uint32_t update = (uint32_t)state[NJ_STEP_UPDATES];
    const uint2 key = make_uint2((uint32_t)seed_low, (uint32_t)seed_high);
    const int64_t step = (int64_t)gridDim.x * NJ_THREADS * 4;
    for (int64_t i = ((int64_t)blockIdx.x * NJ_THREADS + threadIdx.x) * 4; i < n; i += step) {
        vec<float> grad;
        vec<T, 4> weight;
        vec<__nv_bfloat16, 4> moment1, moment2;
        const auto w_bits = weight.read(w + i, n - i);
        const auto m_bits = moment1.read(m + i, n - i);
        const auto v_bits = moment2.read(v + i, n - i);
        grad.load(g + i, n - i);
        weight.set(w_bits);
        moment1.set(m_bits);
        moment2.set(v_bits);
        const uint64_t block = (uint64_t)(first + i) / 4;
        uint4 c = make_uint4((uint32_t)block, (uint32_t)(block >> 32), update, 1);
        const uint4 a = philox(c, key);
        c.w = 2;
        const uint4 b = philox(c, key);
        const uint32_t of_both[] = {a.x, a.y, a.z, a.w}, of_second[] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float h = grad.v[k] * grad_scale;
            const float decay = i + k < n_decay ? weight_decay : 0.0f;
            const float m1 = beta1 * moment1.v[k] + (1 - beta1) * h;
            const float v1 = beta2 * moment2.v[k] + (1 - beta2) * h * h;
            const float ratio = __fdividef(m1 * unbias1, sqrt_fast(v1 * unbias2) + eps);
            const float w1 = weight.v[k] - lr * (ratio + decay * weight.v[k]);
            weight.v[k] = round_at_random(w1, of_both[k] & 0xffffu);
            moment1.v[k] = round_at_random(m1, of_both[k] >> 16);
            moment2.v[k] = round_at_random(v1, of_second[k] & 0xffffu);
        }
        weight.store(w + i, n - i);
        moment1.store(m + i, n - i);
        moment2.store(v + i, n - i);
    }
}
