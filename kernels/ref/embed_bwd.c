/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(embed_bwd)(real *dw, const real *dy, const int32_t *ids, const int32_t *order,
                       const int32_t *runs, int32_t N, int32_t C, int32_t V, float scale)
{
    (void)V;
#pragma omp parallel for schedule(dynamic, 16)
    for (int32_t k = 0; k < N; k++) { /* run k: one thread owns its row of dw */
        for (int32_t j = runs[k]; j < runs[k + 1]; j++) {
            const int32_t n = order[j];
            real *sum = dw + (int64_t)ids[n] * C;
            const real *row = dy + (int64_t)n * C;
#pragma omp simd
            for (int32_t c = 0; c < C; c++)
                sum[c] += (real)scale * row[c];
        }
    }
}
