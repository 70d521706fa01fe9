/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

void NJ_REF(softcap)(real *y, int32_t M, int32_t V, int32_t Vs, float cap)
{
#pragma omp parallel for
    for (int32_t m = 0; m < M; m++) {
        real *row = y + (int64_t)m * Vs;
        for (int32_t v = 0; v < V; v++)
            row[v] = (real)cap * tanh(row[v] / (real)cap);
    }
}
