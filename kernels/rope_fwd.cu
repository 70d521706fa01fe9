// SPDX-License-Identifier: Apache-2.0
#include "rope_rows.cuh"

template <typename T>
static __device__ __forceinline__ void rope_fwd(T *qkv, const T *bias, const float *inv_freq,
                                                const int *pos, int N, int H, int K, int D,
                                                float amplitude)
{
    rope_rows(qkv, bias, nullptr, {inv_freq, pos, amplitude, 1.0f}, N, H, K, D, gridDim.x);
}
