// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// A block has ROWS rows of the columns that a warp covers; a thread keeps its columns' bias and has all its rows in
// flight.
template <typename T>
static __device__ __forceinline__ void bias_add(T *y, const T *b, int N, int C)
{
    constexpr int V = vec<T>::N, WARPS = NJ_THREADS / 32, ROWS = 32, EACH = ROWS / WARPS;
    const int c = (blockIdx.y * 32 + threadIdx.x % 32) * V;
    const int first = block_from_last() * ROWS + threadIdx.x / 32;
    if (c >= C)
        return;
    T *at = y + (int64_t)first * C + c;
    typename vec<T>::raw raw[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k * WARPS < N)
            raw[k] = vec<T>::read(at + (int64_t)(k * WARPS) * C);
    const vec<T> bias = vec<T>::of(vec<T>::read(b + c));
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + k * WARPS < N) {
            vec<T> x = vec<T>::of(raw[k]);
#pragma unroll
            for (int i = 0; i < V; i++)
                x.v[i] += bias.v[i];
            x.store(at + (int64_t)(k * WARPS) * C);
        }
}
