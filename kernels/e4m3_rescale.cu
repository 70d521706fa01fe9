// SPDX-License-Identifier: Apache-2.0
#include "e4m3.cuh"

// Give each row the common scale; one block per row.
template <typename T>
static __device__ __forceinline__ void e4m3_rescale(uint8_t *q, float *scale, const float *top,
                                                    int R, int C)
{
    const int64_t n = blockIdx.x;
    const float own = scale[n], whole = *top;
    /* a fault (infinity, NaN) stays in the rows that have it */
    if (own == whole || !isfinite(whole))
        return;
    __syncthreads(); // all threads have read the scale that is written below
    const float factor = own / whole * E4M3_UNIT;
    for (int c = threadIdx.x * 16; c < C; c += NJ_THREADS * 16) {
        uint4 *at = reinterpret_cast<uint4 *>(q + n * C + c);
        uint4 x = *at;
        uint32_t *word = &x.x;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float v[4];
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[j] = from_e4m3(word[i], j) * factor;
            word[i] = to_e4m3(v[0], v[1]) | to_e4m3(v[2], v[3]) << 16;
        }
        *at = x;
    }
    if (threadIdx.x == 0)
        scale[n] = whole;
}
