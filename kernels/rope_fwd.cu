// SPDX-License-Identifier: Apache-2.0
#include "rope.cuh"

// 64 threads a row.
template <typename T>
static __device__ __forceinline__ void rope_fwd(T *qkv, const T *bias, const float *inv_freq,
                                                const int *pos, int N, int H, int K, int D)
{
    const int64_t n = (int64_t)blockIdx.x * (NJ_THREADS / 64) + threadIdx.x / 64;
    if (n < N)
        rope_row(qkv + n * (H + 2 * K) * D, bias, inv_freq, pos[n], 1.0f, H, K, D, threadIdx.x % 64,
                 64);
}
