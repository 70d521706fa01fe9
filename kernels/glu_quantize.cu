// SPDX-License-Identifier: Apache-2.0
#include "glu.cuh"
#include "quantize.cuh"

// Quantize the activation; one block per row. The row waits in shared memory for its scale, and each thread reads back
// only its own data; float32, for which there is no room, is computed again.
template <typename T, int ACT>
static __device__ __forceinline__ void glu_quantize(uint8_t *q, float *scale, const T *gu, int N,
                                                    int I)
{
    extern __shared__ uint4 shared_row[];
    constexpr int V = vec<T>::N;
    constexpr bool KEPT = sizeof(T) == 2;
    const int64_t n = block_from_last();
    const T *gate = gu + n * 2 * I, *up = gate + I;
    T *kept = reinterpret_cast<T *>(shared_row);
    uint32_t top = LEAST_TOP;
    for (int c = threadIdx.x * V; c < I; c += NJ_THREADS * V) {
        vec<T> a = gated<ACT>(gate + c, up + c);
        if (KEPT) {
            a.store(kept + c);
            a.load(kept + c);
        }
        top = largest(a, top);
    }
    top = group_max<NJ_THREADS>(top);
    if (threadIdx.x == 0)
        scale[n] = scale_of(top);
    const float inverse = inverse_of(top);
    for (int c = threadIdx.x * V; c < I; c += NJ_THREADS * V) {
        vec<T> a;
        if (KEPT)
            a.load(kept + c);
        else
            a = gated<ACT>(gate + c, up + c);
        store_e4m3(q + n * I + c, a, inverse);
    }
}
