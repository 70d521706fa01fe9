// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

template <typename T>
static __device__ __forceinline__ void
adamw(T *p, float *w, float *m, float *v, const float *g, const float *state, int64_t n,
      int64_t n_decay, float beta1, float beta2, float eps, float weight_decay)
{
    if (state[NJ_STEP_SKIP] != 0)
        return;
    const float lr = state[NJ_STEP_LR], grad_scale = state[NJ_STEP_GRAD_SCALE];
    const float unbias1 = __fdividef(1.0f, state[NJ_STEP_BIAS1]);
    const float unbias2 = __fdividef(1.0f, state[NJ_STEP_BIAS2]);
    const int64_t step = (int64_t)gridDim.x * NJ_THREADS * 4;
    for (int64_t i = ((int64_t)blockIdx.x * NJ_THREADS + threadIdx.x) * 4; i < n; i += step) {
        vec<float> grad, weight, first, second;
        grad.load(g + i, n - i);
        weight.load(w + i, n - i);
        first.load(m + i, n - i);
        second.load(v + i, n - i);
        vec<T, 4> low;
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float h = grad.v[k] * grad_scale;
            const float decay = i + k < n_decay ? weight_decay : 0.0f;
            first.v[k] = beta1 * first.v[k] + (1 - beta1) * h;
            second.v[k] = beta2 * second.v[k] + (1 - beta2) * h * h;
            const float ratio =
                __fdividef(first.v[k] * unbias1, sqrt_fast(second.v[k] * unbias2) + eps);
            weight.v[k] -= lr * (ratio + decay * weight.v[k]);
            low.v[k] = weight.v[k];
        }
        weight.store(w + i, n - i);
        first.store(m + i, n - i);
        second.store(v + i, n - i);
        if (p)
            low.store(p + i, n - i);
    }
}
