/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(grad_sumsq)(real *part, const real *g, int64_t n, int32_t P)
{
    const int64_t share = (n + P - 1) / P;
#pragma omp parallel for
    for (int32_t p = 0; p < P; p++) {
        const int64_t end = (p + 1) * share < n ? (p + 1) * share : n;
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = p * share; i < end; i++)
            sum += g[i] * g[i];
        part[p] = sum;
    }
}
