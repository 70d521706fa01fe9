// SPDX-License-Identifier: Apache-2.0
#include "kd_head.cuh"

template <typename T>
static __device__ __forceinline__ void kd_head(T *s, float *kd, float *ce, float *entropy,
                                               float *agree, const T *t, const int *target,
                                               const float *state, int M, int V, int Vs, int Vt,
                                               float tau, float ratio, float beta, float cap)
{
    const int64_t m = blockIdx.x;
    s += m * Vs;
    if (t)
        t += m * Vt;
    const float scale = state[NJ_STEP_INV_VALID] * state[NJ_STEP_LOSS_SCALE];
    kd_head_row<T>(s, t, {kd, ce, entropy, agree}, {scale, tau, ratio, beta, cap}, target[m], V,
                   kd_in_place<T>{s, t, V, Vs, true});
}
