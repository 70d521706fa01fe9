// SPDX-License-Identifier: Apache-2.0
#include "gemv.cuh"

template <typename T, int M>
static __device__ __forceinline__ void gemv_norm(T *y, const T *x, const T *g, const T *w,
                                                 const T *b, int N, int C, int ld, float eps)
{
    constexpr int ROWS = M > 1 ? 2 : 1;
    extern __shared__ uint4 rows[];
    gemv_of_normed<T, M, ROWS, 4>(
        rows, x, g, C, eps, (N + ROWS - 1) / ROWS,
        [&](int64_t n, int r) { return w + row_below(n * ROWS + r, N) * C; },
        [&](int64_t n, float sum) {
            const int lane = threadIdx.x % 32;
            const int64_t row = n * ROWS + lane / M;
            if (lane >= ROWS * M || row >= N)
                return;
            if (b)
                sum += to_f32(b[row]);
            y[(int64_t)(lane % M) * ld + row] = from_f32<T>(sum);
        });
}
