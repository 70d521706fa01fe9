// SPDX-License-Identifier: Apache-2.0
#include "quantize.cuh"

// Find the largest scale, in one block: there are only as many scales as rows. Their bits have the order of the
// numbers, with NaN above infinity.
template <typename T>
static __device__ __forceinline__ void e4m3_top(float *top, const float *scale, int R)
{
    uint32_t most = 0;
    for (int r = threadIdx.x; r < R; r += NJ_THREADS)
        most = max(most, __float_as_uint(scale[r]));
    most = group_max<NJ_THREADS>(most);
    if (threadIdx.x == 0)
        *top = __uint_as_float(most);
}
