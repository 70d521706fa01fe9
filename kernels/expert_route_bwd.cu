// SPDX-License-Identifier: Apache-2.0
#include "ptx.cuh"

#include "base/route.h"

// The experts of a lane are lane, lane + 32, ...; lane j has the j-th chosen expert.
constexpr int EACH = NJ_EXPERTS_MAX / 32;

// A warp has a row.
template <typename T>
static __device__ __forceinline__ void
expert_route_bwd(T *dlogits, const float *dweight, const float *logits, const int *chosen,
                 const float *dprob, const int *keep, int N, int E, int J, int ld, int rule,
                 int renormalize, float scale)
{
    const int lane = threadIdx.x % 32;
    const int64_t n = (int64_t)blockIdx.x * (NJ_THREADS / 32) + threadIdx.x / 32;
    if (n >= N)
        return;
    float prob[EACH], top = -INFINITY, sum = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int e = lane + 32 * i;
        prob[i] = e < E ? logits[n * E + e] : -INFINITY;
        top = fmaxf(top, prob[i]);
    }
    top = warp_max(top);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        prob[i] = exp2_fast((prob[i] - top) * LOG2_E);
        sum += prob[i];
    }
    const float part = 1 / warp_sum(sum);
    const int its = lane < J ? chosen[n * J + lane] : -1;
    const float logit = its >= 0 ? logits[n * E + its] : -INFINITY;
    float t = rule == NJ_ROUTE_SOFTMAX ? exp2_fast((logit - top) * LOG2_E) * part : sigmoid(logit);
    if (rule == NJ_ROUTE_TOP_SOFTMAX) {
        const float best = warp_max(logit);
        t = its >= 0 ? exp2_fast((logit - best) * LOG2_E) : 0;
        t /= warp_sum(t) + 1e-20f;
    }
    t = its >= 0 ? t : 0;
    float h = its >= 0 ? scale * dweight[n * J + lane] : 0;
    if (renormalize && rule != NJ_ROUTE_TOP_SOFTMAX) {
        const float all = warp_sum(t) + 1e-20f;
        h = (h - warp_sum(h * t) / all) / all;
        h = its >= 0 ? h : 0;
    }
    const float product = warp_sum(t * h);
    const float mine = rule == NJ_ROUTE_SOFTMAX       ? h * t
                       : rule == NJ_ROUTE_TOP_SOFTMAX ? t * (h - product)
                                                      : h * t * (1 - t);
    float out[EACH], balance = 0;
    if (keep && keep[n] < 0)
        dprob = nullptr;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int e = lane + 32 * i;
        prob[i] *= part;
        out[i] = dprob && e < E ? dprob[e] : 0;
        balance += prob[i] * out[i];
    }
    balance = warp_sum(balance);
#pragma unroll
    for (int i = 0; i < EACH; i++)
        out[i] = prob[i] * (out[i] - balance - (rule == NJ_ROUTE_SOFTMAX ? product : 0));
    for (int j = 0; j < J; j++) {
        const int e = __shfl_sync(0xffffffffu, its, j);
        const float x = __shfl_sync(0xffffffffu, mine, j);
#pragma unroll
        for (int i = 0; i < EACH; i++)
            out[i] += e == lane + 32 * i ? x : 0;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int e = lane + 32 * i;
        if (e < ld)
            dlogits[n * ld + e] = from_f32<T>(out[i]);
    }
}
