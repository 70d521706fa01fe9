/* SPDX-License-Identifier: Apache-2.0 */
#include "sigmoid.h"

void NJ_REF(gated_norm_bwd)(int D, real *dout, real *dz, real *dw_part, real *y, const real *dy,
                            const real *o, const real *z, const real *w, int32_t N, int32_t H,
                            int32_t ld, int32_t P, float eps)
{
    const int64_t heads = (int64_t)N * H, each = (heads + P - 1) / P;
#pragma omp parallel for
    for (int32_t p = 0; p < P; p++) {
        const int64_t end = (p + 1) * each < heads ? (p + 1) * each : heads;
        real *dw = dw_part + (int64_t)p * D;
        memset(dw, 0, (size_t)D * sizeof *dw);
        for (int64_t i = p * each; i < end; i++) {
            const int64_t at = i * D, gates = i / H * ld + i % H * D;
            real sum = 0, mean = 0;
            for (int d = 0; d < D; d++)
                sum += o[at + d] * o[at + d];
            const real r = 1 / sqrt(sum / (real)D + (real)eps);
            for (int d = 0; d < D; d++) {
                const real gate = z[gates + d], share = sigmoid(gate);
                mean += dy[at + d] * w[d] * gate * share * o[at + d] * r / (real)D;
            }
            for (int d = 0; d < D; d++) {
                const real gate = z[gates + d], share = sigmoid(gate), t = gate * share;
                const real x = o[at + d] * r, g = dy[at + d], dx = g * w[d] * t;
                dw[d] += g * x * t;
                dz[gates + d] = g * x * w[d] * share * (1 + gate * (1 - share));
                if (y)
                    y[at + d] = x * w[d] * t;
                dout[at + d] = r * (dx - x * mean);
            }
        }
    }
}
