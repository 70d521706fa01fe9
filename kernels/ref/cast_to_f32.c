/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(cast_to_f32)(real *dst, const real *src, int64_t n)
{
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i];
}
