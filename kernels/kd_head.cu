// SPDX-License-Identifier: Apache-2.0
#include "kd_head.cuh"

template <typename T>
static __device__ __forceinline__ void
kd_head(T *s, float *kd, float *ce, float *entropy, float *agree, const T *t, const int *target,
        const float *state, int M, int V, int Vs, int Vt, float tau, float ratio, float beta)
{
    const int64_t m = blockIdx.x;
    s += m * Vs;
    if (t)
        t += m * Vt;
    const int hot = target[m];
    const float scale = state[NJ_STEP_INV_VALID] * state[NJ_STEP_LOSS_SCALE];
    if (hot < 0)
        kd_ignored(s, kd, ce, entropy, agree, Vs);
    else if (!t)
        kd_row<T, KD_NONE>(s, kd, ce, entropy, agree, t, hot, scale, V, Vs, tau, ratio, beta);
    else if (beta >= 1)
        kd_row<T, KD_REVERSE>(s, kd, ce, entropy, agree, t, hot, scale, V, Vs, tau, ratio, beta);
    else if (beta > 0)
        kd_row<T, KD_MIXED>(s, kd, ce, entropy, agree, t, hot, scale, V, Vs, tau, ratio, beta);
    else if (tau == 2)
        kd_row<T, KD_TAU_TWO>(s, kd, ce, entropy, agree, t, hot, scale, V, Vs, tau, ratio, beta);
    else
        kd_row<T, KD_ANY_TAU>(s, kd, ce, entropy, agree, t, hot, scale, V, Vs, tau, ratio, beta);
}
