// SPDX-License-Identifier: Apache-2.0
#include "gemv.cuh"

template <typename T, int M>
static __device__ __forceinline__ void gemv_norm_swiglu(T *a, const T *x, const T *g, const T *w,
                                                        int I, int C, float eps)
{
    extern __shared__ uint4 rows[];
    gemv_of_normed<T, M, 2, 4>(
        rows, x, g, C, eps, I, [&](int64_t row, int r) { return w + ((int64_t)r * I + row) * C; },
        [&](int64_t row, float sum) {
            const int lane = threadIdx.x % 32;
            const float gate = to_f32(from_f32<T>(sum)); // as it would be stored
            const float up = __shfl_xor_sync(0xffffffffu, gate, M);
            if (lane < M)
                a[(int64_t)lane * I + row] = from_f32<T>(gate * sigmoid(gate) * up);
        });
}
