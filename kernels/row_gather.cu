// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Gather a row per warp.
template <typename T>
static __device__ __forceinline__ void row_gather(T *dst, const T *src, const int *index, int M,
                                                  int R, int C)
{
    constexpr int V = vec<T>::N, UNROLL = 4;
    const int64_t m = (int64_t)blockIdx.x * (NJ_THREADS / 32) + threadIdx.x / 32;
    if (m >= M)
        return;
    const int64_t from = index[m];
    for (int begin = threadIdx.x % 32 * V; begin < C; begin += UNROLL * 32 * V) {
        typename vec<T>::raw raw[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const int c = begin + k * 32 * V;
            raw[k] = {};
            if (from >= 0 && c < C)
                raw[k] = vec<T>::read(src + from * C + c);
        }
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const int c = begin + k * 32 * V;
            if (c < C)
                *reinterpret_cast<typename vec<T>::raw *>(dst + m * C + c) = raw[k];
        }
    }
}
