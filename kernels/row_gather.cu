// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// Write value(bits) for each access of a row, or of zeros if `from` is NULL; the warp has UNROLL of them in flight.
template <typename T, int UNROLL, typename F>
static __device__ __forceinline__ void gather_row(T *to, const T *from, int C, F value)
{
    constexpr int V = vec<T>::N;
    for (int begin = threadIdx.x % 32 * V; begin < C; begin += UNROLL * 32 * V) {
        typename vec<T>::raw raw[UNROLL];
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const int c = begin + k * 32 * V;
            raw[k] = {};
            if (from && c < C)
                raw[k] = vec<T>::read(from + c);
        }
#pragma unroll
        for (int k = 0; k < UNROLL; k++) {
            const int c = begin + k * 32 * V;
            if (c < C)
                *reinterpret_cast<typename vec<T>::raw *>(to + c) = value(raw[k]);
        }
    }
}

// Gather a row per warp. A product with half as many accesses in flight needs no more registers than a copy, of which
// as many blocks are resident, then.
template <typename T>
static __device__ __forceinline__ void row_gather(T *dst, const T *src, const int *index, int M,
                                                  int R, int C, float scale)
{
    typedef typename vec<T>::raw raw;
    const int64_t m = (int64_t)blockIdx.x * (NJ_THREADS / 32) + threadIdx.x / 32;
    if (m >= M)
        return;
    const int64_t row = index ? index[m] : m;
    const T *from = row < 0 ? nullptr : src + row * C;
    if (scale == 1)
        gather_row<T, 4>(dst + m * C, from, C, [](raw x) { return x; });
    else
        gather_row<T, 2>(dst + m * C, from, C, [scale](raw x) {
            vec<T> y = vec<T>::of(x);
#pragma unroll
            for (int i = 0; i < vec<T>::N; i++)
                y.v[i] *= scale;
            return y.bits();
        });
}
