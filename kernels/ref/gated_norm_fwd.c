/* SPDX-License-Identifier: Apache-2.0 */
#include "sigmoid.h"

void NJ_REF(gated_norm_fwd)(int D, real *y, const real *o, const real *z, const real *w, int32_t N,
                            int32_t H, int32_t ld, float eps)
{
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++)
        for (int32_t h = 0; h < H; h++) {
            const int64_t at = ((int64_t)n * H + h) * D;
            const real *x = o + at, *gates = z + (int64_t)n * ld + (int64_t)h * D;
            real sum = 0;
            for (int d = 0; d < D; d++)
                sum += x[d] * x[d];
            const real r = 1 / sqrt(sum / (real)D + (real)eps);
            for (int d = 0; d < D; d++) {
                const real gate = gates[d];
                y[at + d] = x[d] * r * w[d] * (gate * sigmoid(gate));
            }
        }
}
