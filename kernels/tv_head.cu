// SPDX-License-Identifier: Apache-2.0
#include "kd_head.cuh"

template <typename T>
static __device__ __forceinline__ void
tv_head(T *s, float *tv, float *ce, float *entropy, float *agree, const T *t, const int *target,
        const float *state, int M, int V, int Vs, int Vt, float tau, float ratio, int gradient)
{
    const int64_t m = blockIdx.x;
    s += m * Vs;
    t += m * Vt;
    const int hot = target[m];
    const float scale = state[NJ_STEP_INV_VALID] * state[NJ_STEP_LOSS_SCALE];
    if (hot < 0)
        kd_ignored(s, tv, ce, entropy, agree, Vs, gradient != 0);
    else
        kd_row<T, KD_TV>(s, tv, ce, entropy, agree, t, hot, scale, V, Vs, tau, ratio, 0,
                         gradient != 0);
}
