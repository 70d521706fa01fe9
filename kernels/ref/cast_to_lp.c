/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

/* Copy only: the elements of src are already numbers that dst can hold. The test does the rounding. */
void NJ_REF(cast_to_lp)(real *dst, const real *src, int64_t n)
{
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++)
        dst[i] = src[i];
}
