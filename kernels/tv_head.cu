// SPDX-License-Identifier: Apache-2.0
#include "kd_head.cuh"

template <typename T>
static __device__ __forceinline__ void tv_head(T *s, float *tv, float *ce, float *entropy,
                                               float *agree, const T *t, const int *target,
                                               const float *state, int M, int V, int Vs, int Vt,
                                               float tau, float ratio, int gradient, float cap)
{
    const int64_t m = blockIdx.x;
    s += m * Vs;
    t += m * Vt;
    const int hot = target[m];
    const float scale = state[NJ_STEP_INV_VALID] * state[NJ_STEP_LOSS_SCALE];
    const kd_losses to = {tv, ce, entropy, agree};
    const kd_in_place<T> in_place = {s, t, V, Vs, gradient != 0};
    if (hot < 0)
        kd_ignored(to, in_place);
    else
        kd_row<T, KD_TV>(s, t, to, {scale, tau, ratio, 0, cap}, hot, V, in_place);
}
