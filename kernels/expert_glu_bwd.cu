// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// A block has a pair. A thread reads all its inputs before it writes, so dgu may equal gu and act may equal d.
template <typename T>
static __device__ __forceinline__ void
expert_glu_bwd(T *dgu, T *act, float *dweight, const T *d, const T *gu, const float *weight,
               const int *place, const int *chosen, const T *dy, const T *bias, int N, int E, int J,
               int I, int C, float limit, float alpha)
{
    constexpr int V = vec<T>::N;
    const int pair = blockIdx.x;
    const int64_t p = place[pair];
    const float most = limit > 0 ? limit : INFINITY, v = weight[pair];
    const float slope = limit > 0 ? alpha : 1, added = limit > 0 ? 1 : 0;
    if (p < 0) {
        if (threadIdx.x == 0)
            dweight[pair] = 0;
        return;
    }
    float sum = 0;
    for (int c = threadIdx.x * V; c < I; c += NJ_THREADS * V) {
        vec<T> x, gate, up;
        x.load(d + p * I + c);
        gate.load(gu + p * 2 * I + c);
        up.load(gu + p * 2 * I + I + c);
#pragma unroll
        for (int i = 0; i < V; i++) {
            const bool free_gate = !(gate.v[i] > most);
            const bool free_up = !(up.v[i] > most || up.v[i] < -most);
            const float g = free_gate ? gate.v[i] : most;
            const float u = (free_up ? up.v[i] : copysignf(most, up.v[i])) + added;
            const float z = sigmoid(slope * g), a = g * z * u, its = v * x.v[i];
            sum += x.v[i] * a;
            gate.v[i] = free_gate ? its * u * z * (1 + slope * g * (1 - z)) : 0;
            up.v[i] = free_up ? its * g * z : 0;
            x.v[i] = v * a;
        }
        x.store(act + p * I + c);
        gate.store(dgu + p * 2 * I + c);
        up.store(dgu + p * 2 * I + I + c);
    }
    if (bias) {
        const T *const row = dy + (int64_t)(pair / J) * C, *const its =
                                                               bias + (int64_t)chosen[pair] * C;
        for (int c = threadIdx.x * V; c < C; c += NJ_THREADS * V) {
            vec<T> x, b;
            x.load(row + c);
            b.load(its + c);
#pragma unroll
            for (int i = 0; i < V; i++)
                sum += x.v[i] * b.v[i];
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        dweight[pair] = sum;
}
