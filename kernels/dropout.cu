// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"
#include "philox.cuh"

template <typename T>
static __device__ __forceinline__ void dropout(T *y, const T *x, const int32_t *key, int64_t n,
                                               float p, int32_t mask)
{
    constexpr int N = vec<T>::N;
    const int64_t step = (int64_t)gridDim.x * NJ_THREADS * N;
    const uint2 k = make_uint2((uint32_t)key[0], (uint32_t)key[1]);
    const uint32_t least = (uint32_t)(p * 4294967296.0f); // exact: p times a power of two
    const float scale = 1.0f / (1.0f - p);
    for (int64_t i = ((int64_t)blockIdx.x * NJ_THREADS + threadIdx.x) * N; i < n; i += step) {
        vec<T> v;
        v.load(x + i, n - i);
#pragma unroll
        for (int b = 0; b < N; b += 4) {
            const uint64_t block = (uint64_t)(i + b) / 4;
            const uint4 w =
                philox(make_uint4((uint32_t)block, (uint32_t)(block >> 32), (uint32_t)mask, 0), k);
            v.v[b] = w.x >= least ? v.v[b] * scale : 0.0f;
            v.v[b + 1] = w.y >= least ? v.v[b + 1] * scale : 0.0f;
            v.v[b + 2] = w.z >= least ? v.v[b + 2] * scale : 0.0f;
            v.v[b + 3] = w.w >= least ? v.v[b + 3] * scale : 0.0f;
        }
        v.store(y + i, n - i);
    }
}
