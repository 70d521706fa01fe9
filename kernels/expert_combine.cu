// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

#include "base/route.h"

// A block has a row; UNROLL outputs of it are in flight at a time.
template <typename T>
static __device__ __forceinline__ void expert_combine(T *y, const T *d, const float *weight,
                                                      const int *place, const T *addend, int N,
                                                      int J, int C, int P)
{
    constexpr int V = vec<T>::N, UNROLL = 4, MOST = NJ_CHOSEN_MAX + UNROLL;
    __shared__ int from[MOST];
    __shared__ float its[MOST];
    const int64_t n = block_from_last();
    if (threadIdx.x < MOST) {
        const int j = threadIdx.x;
        from[j] = j < J ? place[n * J + j] : -1;
        its[j] = from[j] < 0 ? 0 : weight ? weight[n * J + j] : 1;
    }
    __syncthreads();
    for (int c = threadIdx.x * V; c < C; c += NJ_THREADS * V) {
        vec<T> sum = {};
        if (addend)
            sum.load(addend + n * C + c);
        for (int j = 0; j < J; j += UNROLL) {
            typename vec<T>::raw raw[UNROLL];
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                raw[k] = {};
                if (from[j + k] >= 0)
                    raw[k] = vec<T>::read(d + (int64_t)from[j + k] * C + c);
            }
#pragma unroll
            for (int k = 0; k < UNROLL; k++) {
                const vec<T> x = vec<T>::of(raw[k]);
#pragma unroll
                for (int i = 0; i < V; i++)
                    sum.v[i] += its[j + k] * x.v[i];
            }
        }
        sum.store(y + n * C + c);
    }
}
