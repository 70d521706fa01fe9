// SPDX-License-Identifier: Apache-2.0
#include "dequantize.cuh"

// Eight elements a thread and time, all of them read before the first is written.
template <typename T, int TYPE>
static __device__ __forceinline__ void dequantize(T *dst, const int *data, const int *index, int M,
                                                  int R, int C)
{
    constexpr int TIMES = 4;
    typedef block<TYPE> B;
    const uint32_t groups = C / 8, first = blockIdx.x * (TIMES * NJ_THREADS) + threadIdx.x;
    const int64_t row_bytes = int64_t(C / B::ELEMENTS) * B::BYTES;
    float v[TIMES][8];
#pragma unroll
    for (int k = 0; k < TIMES; k++) {
        const uint32_t n = first + k * NJ_THREADS, m = n / groups, c = n % groups * 8;
        if (m >= uint32_t(M))
            break;
        const int row = index ? index[m] : int(m);
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[k][i] = 0;
        if (row >= 0)
            B::eight(v[k],
                     reinterpret_cast<const uint8_t *>(data) + row * row_bytes +
                         c / B::ELEMENTS * B::BYTES,
                     c % B::ELEMENTS);
    }
#pragma unroll
    for (int k = 0; k < TIMES; k++) {
        const uint32_t n = first + k * NJ_THREADS;
        if (n / groups >= uint32_t(M))
            break;
#pragma unroll
        for (int i = 0; i < 8; i += vec<T>::N) {
            vec<T> x;
#pragma unroll
            for (int j = 0; j < vec<T>::N; j++)
                x.v[j] = v[k][i + j];
            x.store(dst + int64_t(n) * 8 + i);
        }
    }
}
