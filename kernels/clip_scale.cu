// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Return 1 - beta^updates, by squaring in double.
static __device__ __forceinline__ float bias_correction(double beta, float updates)
{
    double power = 1;
    for (unsigned left = (unsigned)updates; left > 0; left /= 2) {
        if (left % 2)
            power *= beta;
        beta *= beta;
    }
    return (float)(1 - power);
}

static __device__ __forceinline__ void adapt_loss_scale(float *state, bool skip, int growth)
{
    const float scale = state[NJ_STEP_LOSS_SCALE], good = state[NJ_STEP_GOOD_STEPS] + 1;
    if (skip) {
        state[NJ_STEP_LOSS_SCALE] = fmaxf(scale / 2, 1);
        state[NJ_STEP_GOOD_STEPS] = 0;
    } else if (good >= growth) {
        state[NJ_STEP_LOSS_SCALE] = fminf(scale * 2, 65536);
        state[NJ_STEP_GOOD_STEPS] = 0;
    } else {
        state[NJ_STEP_GOOD_STEPS] = good;
    }
}

template <typename T>
static __device__ __forceinline__ void clip_scale(float *state, const float *part, int P,
                                                  float max_norm, float beta1, float beta2,
                                                  int growth)
{
    __shared__ double sums[NJ_THREADS];
    double sum = 0;
    for (int p = threadIdx.x; p < P; p += NJ_THREADS)
        sum += part[p];
    sums[threadIdx.x] = sum;
    for (int half = NJ_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x != 0)
        return;

    const float inv_scale = 1 / state[NJ_STEP_LOSS_SCALE];
    const float norm = (float)(sqrt(sums[0]) * inv_scale);
    const bool skip = !isfinite(norm);
    state[NJ_STEP_GRAD_NORM] = norm;
    state[NJ_STEP_SKIP] = skip ? 1.0f : 0.0f;
    state[NJ_STEP_GRAD_SCALE] = inv_scale;
    if (skip) {
        state[NJ_STEP_SKIPPED] += 1;
    } else {
        const float updates = state[NJ_STEP_UPDATES] + 1;
        state[NJ_STEP_UPDATES] = updates;
        state[NJ_STEP_BIAS1] = bias_correction(beta1, updates);
        state[NJ_STEP_BIAS2] = bias_correction(beta2, updates);
        if (max_norm > 0)
            state[NJ_STEP_GRAD_SCALE] = inv_scale * fminf(1, max_norm / (norm + 1e-6f));
    }
    if (growth > 0)
        adapt_loss_scale(state, skip, growth);
}
