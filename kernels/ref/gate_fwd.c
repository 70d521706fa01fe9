/* SPDX-License-Identifier: Apache-2.0 */
#include "sigmoid.h"

void NJ_REF(gate_fwd)(real *y, const real *o, const real *g, int32_t N, int32_t C, int32_t D)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++) {
        const int64_t first = (int64_t)n * C;
        for (int64_t at = first; at < first + C; at++)
            y[at] = o[at] * sigmoid(g[at / D]);
    }
}
