/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(softcap)(real *y, const real *x, int64_t n, float cap)
{
#pragma omp parallel for
    for (int64_t i = 0; i < n; i++)
        y[i] = (real)cap * (real)tanh(x[i] / (real)cap);
}
