// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// A thread has an expert.
template <typename T>
static __device__ __forceinline__ void expert_balance(float *dprob, float *loss, const float *sums,
                                                      const float *state, int E, int J,
                                                      float factor)
{
    const int e = threadIdx.x;
    const float prob = e < E ? sums[e] : 0, count = e < E ? sums[E + e] : 0;
    const float rows = block_sum(count) / J, products = block_sum(count * prob);
    const float share = rows > 0 ? E / rows / rows : 0;
    if (e == 0)
        *loss += share * products;
    if (e < E)
        dprob[e] = factor * share * count * state[NJ_STEP_LOSS_SCALE];
}
