// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// A thread takes 16 bytes; the 8, 16 or 32 lanes that share a row of D add up.
template <typename T>
static __device__ __forceinline__ void attn_bwd_delta(float *delta, const T *dout, const T *o,
                                                      int B, int S, int H, int D)
{
    const int lanes = D / vec<T>::N;
    const int64_t at = (int64_t)blockIdx.x * NJ_THREADS + threadIdx.x, n = at / lanes;
    const bool valid = n < (int64_t)B * S * H;
    float sum = 0;
    if (valid) {
        vec<T> x, y;
        x.load(dout + at * vec<T>::N);
        y.load(o + at * vec<T>::N);
#pragma unroll
        for (int i = 0; i < vec<T>::N; i++)
            sum += x.v[i] * y.v[i];
    }
    for (int d = lanes / 2; d > 0; d /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (valid && at % lanes == 0) {
        const int64_t row = n / H; // b * S + i
        delta[(row / S * H + n % H) * S + row % S] = sum;
    }
}
