/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(bias_bwd)(real *part, const real *dy, int32_t N, int32_t C, int32_t P)
{
#pragma omp parallel for
    for (int32_t p = 0; p < P; p++) {
        real *sum = part + (int64_t)p * C;
        memset(sum, 0, (size_t)C * sizeof(*sum));
        for (int64_t n = p; n < N; n += P) {
            const real *row = dy + n * C;
#pragma omp simd
            for (int32_t c = 0; c < C; c++)
                sum[c] += row[c];
        }
    }
}
