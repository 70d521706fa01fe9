// SPDX-License-Identifier: Apache-2.0
#include "rope_rows.cuh"

// Rotate back: the transpose of a rotation is its inverse, and an amplitude is a factor of both.
template <typename T>
static __device__ __forceinline__ void rope_bwd(T *dqkv, float *dbias_part, const float *inv_freq,
                                                const int *pos, int N, int H, int K, int D, int P,
                                                float amplitude)
{
    rope_rows(dqkv, (const T *)nullptr, dbias_part, {inv_freq, pos, amplitude, -1.0f}, N, H, K, D,
              P);
}
