// SPDX-License-Identifier: Apache-2.0
#include "common.cuh"

// A thread's share of the queries or keys of a row, at most MOST elements, which stay in registers.
template <typename T> struct row_part {
    static constexpr int V = vec<T>::N, MOST = 8192, KEEP = MOST / V / NJ_THREADS;
    typename vec<T>::raw keep[KEEP];

    static __device__ __forceinline__ int column(int k)
    {
        return (k * NJ_THREADS + (int)threadIdx.x) * V;
    }
    __device__ __forceinline__ row_part(const T *x, int C)
    {
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            keep[k] = {};
            if (column(k) < C)
                keep[k] = vec<T>::read(x + column(k));
        }
    }
    __device__ __forceinline__ float squares() const
    {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < KEEP; k++) {
            const vec<T> a = vec<T>::of(keep[k]);
#pragma unroll
            for (int i = 0; i < V; i++)
                sum += a.v[i] * a.v[i];
        }
        return sum;
    }
    __device__ __forceinline__ void store(T *y, const T *w, int C, float r) const
    {
#pragma unroll
        for (int k = 0; k < KEEP; k++)
            if (column(k) < C) {
                const vec<T> gain = vec<T>::of(vec<T>::read(w + column(k)));
                vec<T> a = vec<T>::of(keep[k]);
#pragma unroll
                for (int i = 0; i < V; i++)
                    a.v[i] = a.v[i] * r * gain.v[i];
                a.store(y + column(k));
            }
    }
};

// Normalize a row per block. All of it is read before anything waits.
template <typename T>
static __device__ __forceinline__ void qknorm_row_fwd(T *y, float *rstd, const T *x, const T *wq,
                                                      const T *wk, int N, int H, int K, int D,
                                                      float eps)
{
    const int64_t n = block_from_last();
    const int q = H * D, k = K * D;
    x += n * (q + 2 * k);
    y += n * (q + 2 * k);
    const row_part<T> queries(x, q), keys(x + q, k);
    if (y != x) {
        const row_part<T> values(x + q + k, k);
#pragma unroll
        for (int i = 0; i < values.KEEP; i++)
            if (values.column(i) < k)
                *reinterpret_cast<typename vec<T>::raw *>(y + q + k + values.column(i)) =
                    values.keep[i];
    }
    const float r_q = rsqrtf(block_sum(queries.squares()) / q + eps);
    const float r_k = rsqrtf(block_sum(keys.squares()) / k + eps);
    if (threadIdx.x == 0) {
        rstd[2 * n] = r_q;
        rstd[2 * n + 1] = r_k;
    }
    queries.store(y, wq, q, r_q);
    keys.store(y + q, wk, k, r_k);
}
