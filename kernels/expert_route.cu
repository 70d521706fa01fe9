// SPDX-License-Identifier: Apache-2.0
#include "ptx.cuh"

#include "base/route.h"

// The experts of a lane are lane, lane + 32, ...; a set of them is a mask, whose bit i is expert lane + 32 i.
constexpr int EACH = NJ_EXPERTS_MAX / 32;

struct candidate {
    float key;
    int e;
};

// Return the better of what all lanes have: the larger key; of equals, the lower expert.
static __device__ __forceinline__ candidate best_of_lanes(candidate mine)
{
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) {
        candidate other;
        other.key = __shfl_xor_sync(0xffffffffu, mine.key, d);
        other.e = __shfl_xor_sync(0xffffffffu, mine.e, d);
        if (other.key > mine.key || other.key == mine.key && other.e < mine.e)
            mine = other;
    }
    return mine;
}

// Return the best expert of those that the lanes allow; if there are none, its number is NJ_EXPERTS_MAX.
static __device__ __forceinline__ candidate best_expert(const float (&key)[EACH], uint32_t allowed)
{
    candidate mine = {-INFINITY, NJ_EXPERTS_MAX};
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if ((allowed & 1u << i) && (mine.e == NJ_EXPERTS_MAX || key[i] > mine.key))
            mine = {key[i], (int)threadIdx.x % 32 + 32 * i};
    return best_of_lanes(mine);
}

// Return the bit of an expert in this lane's mask; 0 if it is another lane's.
static __device__ __forceinline__ uint32_t bit_of(int e)
{
    return e % 32 == threadIdx.x % 32 && e < NJ_EXPERTS_MAX ? 1u << e / 32 : 0;
}

// Return which of the lane's experts belong to the best groups.
static __device__ __forceinline__ uint32_t best_groups(const float (&key)[EACH], uint32_t all,
                                                       int size, int G, int used)
{
    const int lane = threadIdx.x % 32;
    candidate mine = {-INFINITY, NJ_EXPERTS_MAX}; // lane g has group g
    for (int g = 0; g < G; g++) {
        uint32_t of_group = 0;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            of_group |= (lane + 32 * i) / size == g ? 1u << i : 0;
        of_group &= all;
        candidate best = best_expert(key, of_group);
        float sum = best.key;
        if (size > 1) {
            of_group &= ~bit_of(best.e);
            best = best_expert(key, of_group);
            sum += best.key;
        }
        if (lane == g)
            mine = {sum == sum ? sum : -INFINITY, g};
    }
    uint32_t kept = 0;
    for (int k = 0; k < used; k++) {
        const candidate best = best_of_lanes(mine);
        if (mine.e == best.e)
            mine = {-INFINITY, NJ_EXPERTS_MAX};
#pragma unroll
        for (int i = 0; i < EACH; i++)
            kept |= (lane + 32 * i) / size == best.e ? 1u << i : 0;
    }
    return kept & all;
}

// A warp has a row.
template <typename T>
static __device__ __forceinline__ void
expert_route(int *chosen, float *weight, const T *logits, const T *bias, int N, int E, int J, int G,
             int groups_used, int rule, int renormalize, float scale, float eps)
{
    const int lane = threadIdx.x % 32;
    const int64_t n = (int64_t)blockIdx.x * (NJ_THREADS / 32) + threadIdx.x / 32;
    if (n >= N)
        return;
    float x[EACH], key[EACH], top = -INFINITY, sum = 0;
    uint32_t allowed = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        const int e = lane + 32 * i;
        x[i] = e < E ? logits[n * E + e] : -INFINITY;
        allowed |= e < E ? 1u << i : 0;
        top = fmaxf(top, x[i]);
    }
    top = warp_max(top);
    const auto score = [&](float logit) {
        return rule == NJ_ROUTE_SIGMOID       ? sigmoid(logit)
               : rule == NJ_ROUTE_TOP_SOFTMAX ? logit
                                              : exp2_fast((logit - top) * LOG2_E);
    };
    if (rule == NJ_ROUTE_SOFTMAX) {
#pragma unroll
        for (int i = 0; i < EACH; i++)
            sum += score(x[i]);
        sum = warp_sum(sum);
    }
    const float part = rule == NJ_ROUTE_SOFTMAX ? 1 / sum : 1;
    const auto below_all = [](float v) { return v == v ? v : -INFINITY; };
    if (bias || G > 1) {
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const int e = lane + 32 * i;
            key[i] = below_all(score(x[i]) * part + (bias && e < E ? bias[e] : 0));
        }
    }
    if (G > 1)
        allowed = best_groups(key, allowed, E / G, G, groups_used);
    if (!bias) { // scores that are rounded may be equal
#pragma unroll
        for (int i = 0; i < EACH; i++)
            key[i] = below_all(x[i]);
    }
    // Lane j keeps the j-th expert and its logit.
    int its = 0;
    for (int j = 0; j < J; j++) {
        const candidate best = best_expert(key, allowed);
        allowed &= ~bit_of(best.e);
        its = lane == j ? best.e : its;
    }
    const float logit = lane < J ? logits[n * E + its] : -INFINITY;
    float its_score = score(logit) * part;
    if (rule == NJ_ROUTE_TOP_SOFTMAX)
        its_score = exp2_fast((logit - warp_max(logit)) * LOG2_E);
    const float total = warp_sum(lane < J ? its_score : 0);
    if (renormalize || rule == NJ_ROUTE_TOP_SOFTMAX)
        its_score /= total + eps;
    if (lane < J) {
        chosen[n * J + lane] = its;
        weight[n * J + lane] = scale * its_score;
    }
}
