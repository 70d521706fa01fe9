// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Block r sums run r. Only one block touches a row of dw, so the order of sums is that of the run.
template <typename T>
static __device__ __forceinline__ void embed_bwd(float *dw, const T *dy, const int *ids,
                                                 const int *order, const int *runs, int N, int C,
                                                 int V)
{
    constexpr int BATCH = 8; // rows in flight
    const int begin = runs[blockIdx.x], end = runs[blockIdx.x + 1];
    if (begin >= end)
        return;
    float *out = dw + (int64_t)ids[order[begin]] * C;
    for (int c = threadIdx.x * 4; c < C; c += NJ_THREADS * 4) {
        vec<float> total;
        total.load(out + c);
        float sum[4] = {};
        for (int first = begin; first < end; first += BATCH) {
            typename vec<T, 4>::raw raw[BATCH];
#pragma unroll
            for (int k = 0; k < BATCH; k++)
                if (first + k < end)
                    raw[k] = vec<T, 4>::read(dy + (int64_t)order[first + k] * C + c);
#pragma unroll
            for (int k = 0; k < BATCH; k++)
                if (first + k < end) {
                    vec<T, 4> g;
                    g.set(raw[k]);
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        sum[i] += g.v[i];
                }
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            total.v[i] += sum[i];
        total.store(out + c);
    }
}
