// SPDX-License-Identifier: Apache-2.0
#include "dequantize.cuh"

template <typename T> static __device__ __forceinline__ void store8(T *dst, const float (&v)[8])
{
#pragma unroll
    for (int i = 0; i < 8; i += vec<T>::N) {
        vec<T> x;
#pragma unroll
        for (int k = 0; k < vec<T>::N; k++)
            x.v[k] = v[i + k];
        x.store(dst + i);
    }
}

// Expand the same eight elements of each of TIMES blocks per thread. If the blocks lie in the order of dst, all are
// read before the first is written, and from one address; otherwise, and at the end, one after another.
template <typename T, int TYPE>
static __device__ __forceinline__ void dequantize(T *dst, const int *data, const int *index, int M,
                                                  int R, int C)
{
    typedef block<TYPE> B;
    constexpr int TIMES = 4, IN_BLOCK = B::ELEMENTS / 8, APART = NJ_THREADS / IN_BLOCK;
    const int row_blocks = C / B::ELEMENTS, blocks = M * row_blocks;
    const int first = blockIdx.x * (TIMES * APART) + threadIdx.x / IN_BLOCK;
    const int e = threadIdx.x % IN_BLOCK * 8;
    T *to = dst + int64_t(first) * B::ELEMENTS + e;
    float v[8];
    if (index == nullptr && int(blockIdx.x + 1) * (TIMES * APART) <= blocks) {
        const place from = place_of<TYPE>(data, first);
        eight x[TIMES];
#pragma unroll
        for (int k = 0; k < TIMES; k++)
            x[k] = B::read(from + k * APART * B::BYTES, e);
        B::begin();
#pragma unroll
        for (int k = 0; k < TIMES; k++) {
            B::values(v, x[k]);
            store8(to + k * APART * B::ELEMENTS, v);
        }
        return;
    }
    B::begin();
#pragma unroll 1
    for (int k = 0; k < TIMES && first + k * APART < blocks; k++) {
        const int n = first + k * APART;
        const int64_t row = index ? index[n / row_blocks] : n / row_blocks;
        const int64_t from = max(row, int64_t(0)) * row_blocks + n % row_blocks;
        eight x = B::read(place_of<TYPE>(data, from), e);
        if (row < 0)
            x.scale = x.offset = 0;
        B::values(v, x);
        store8(to + k * APART * B::ELEMENTS, v);
    }
}
