// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// One block a row; the row is read twice, the second time from L1 or L2.
template <typename T>
static __device__ __forceinline__ void rmsnorm_fwd(T *y, float *rstd, const T *x, const T *w, int N,
                                                   int C, float eps)
{
    const int64_t row = blockIdx.x;
    x += row * C;
    y += row * C;
    float sum = 0;
    for (int c = threadIdx.x * vec<T>::N; c < C; c += NJ_THREADS * vec<T>::N) {
        vec<T> a;
        a.load(x + c);
#pragma unroll
        for (int i = 0; i < vec<T>::N; i++)
            sum += a.v[i] * a.v[i];
    }
    const float r = rsqrtf(block_sum(sum) / C + eps);
    if (threadIdx.x == 0)
        rstd[row] = r;
    for (int c = threadIdx.x * vec<T>::N; c < C; c += NJ_THREADS * vec<T>::N) {
        vec<T> a, g;
        a.load(x + c);
        g.load(w + c);
#pragma unroll
        for (int i = 0; i < vec<T>::N; i++)
            a.v[i] = a.v[i] * r * g.v[i];
        a.store(y + c);
    }
}
