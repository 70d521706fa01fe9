/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(accumulate)(real *dst, const real *src, int64_t n)
{
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++)
        dst[i] += src[i];
}
