// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// One block: there are as many scales as rows. Their bits are ordered like the numbers, with NaN above
// infinity.
template <typename T>
static __device__ __forceinline__ void e4m3_top(float *top, const float *scale, int R)
{
    __shared__ uint32_t part[NJ_THREADS / 32];
    uint32_t most = 0;
    for (int r = threadIdx.x; r < R; r += NJ_THREADS)
        most = max(most, __float_as_uint(scale[r]));
    for (int d = 16; d > 0; d >>= 1)
        most = max(most, __shfl_xor_sync(0xffffffffu, most, d));
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = most;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < NJ_THREADS / 32; i++)
            most = max(most, part[i]);
        *top = __uint_as_float(most);
    }
}
