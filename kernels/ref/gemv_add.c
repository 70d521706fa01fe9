/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(gemv_add)(int M, real *s, const real *x, const real *w, int32_t N, int32_t K,
                      float scale)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        for (int64_t m = 0; m < M; m++) {
            real sum = 0;
            for (int32_t k = 0; k < K; k++)
                sum += x[m * K + k] * w[(int64_t)n * K + k];
            s[m * N + n] += (real)scale * sum;
        }
    }
}
