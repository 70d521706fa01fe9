/* SPDX-License-Identifier: Apache-2.0 */
#include "sigmoid.h"

void NJ_REF(gate_bwd)(real *dout, real *dg, real *y, const real *dy, const real *o, const real *g,
                      int32_t N, int32_t C, int32_t D)
{
    const int64_t gates = C / D;
#pragma omp parallel for
    for (int64_t h = 0; h < N * gates; h++) {
        const real z = sigmoid(g[h]);
        real sum = 0;
        for (int64_t at = h * D; at < (h + 1) * D; at++) {
            const real d = dy[at], x = o[at];
            sum += d * x;
            dout[at] = d * z;
            if (y)
                y[at] = x * z;
        }
        dg[h] = z * (1 - z) * sum;
    }
}
