// SPDX-License-Identifier: Apache-2.0
#include "glu.cuh"

// Compute 2048 columns of row n in block (n, y).
template <typename T, int ACT>
static __device__ __forceinline__ void glu_fwd(T *y, const T *gu, int N, int I)
{
    constexpr int V = vec<T>::N;
    const int64_t n = block_from_last();
    const int begin = blockIdx.y * 2048, end = min(I, begin + 2048);
    const T *gate = gu + n * 2 * I, *up = gate + I;
    for (int c = begin + threadIdx.x * V; c < end; c += NJ_THREADS * V) {
        const vec<T> a = gated<ACT>(gate + c, up + c);
        a.store(y + n * I + c);
    }
}
