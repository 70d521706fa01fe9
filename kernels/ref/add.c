/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(add)(real *y, const real *a, const real *b, int64_t n)
{
#pragma omp parallel for simd
    for (int64_t i = 0; i < n; i++)
        y[i] = a[i] + b[i];
}
