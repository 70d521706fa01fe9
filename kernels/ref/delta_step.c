/* SPDX-License-Identifier: Apache-2.0 */
#include "delta.h"

void NJ_REF(delta_step)(int D, real *o, real *state, const real *qkv, const real *b, const real *a,
                        const real *a_log, const real *dt_bias, const int32_t *slot,
                        const int32_t *pos, int32_t R, int32_t H, int32_t K, int32_t ld, int32_t G)
{
    (void)G;
#pragma omp parallel for collapse(2)
    for (int32_t r = 0; r < R; r++)
        for (int32_t h = 0; h < H; h++) {
            if (slot[r] < 0)
                continue;
            const struct delta_columns at = delta_columns(D, H, K, h);
            const real *q = qkv + r * at.row + at.q, *k = qkv + r * at.row + at.k;
            const real *v = qkv + r * at.row + at.v;
            const int64_t column = (int64_t)r * ld + h;
            const real keep = exp(-exp(a_log[h]) * softplus(a[column] + dt_bias[h]));
            const real beta = sigmoid(b[column]);
            const real of_k = 1 / sqrt(dot(k, k, D) + (real)DELTA_EPS);
            const real of_q = 1 / sqrt((dot(q, q, D) + (real)DELTA_EPS) * (real)D);
            for (int c = 0; c < D; c++) {
                real *row = state + (((int64_t)slot[r] * H + h) * D + c) * D;
                for (int d = 0; d < D; d++) {
                    row[d] = pos[r] > 0 ? row[d] : 0;
                    row[d] = keep * row[d];
                }
                add_scaled(row, beta * (v[c] - of_k * dot(row, k, D)) * of_k, k, D);
                o[((int64_t)r * H + h) * D + c] = of_q * dot(row, q, D);
            }
        }
}
