/* SPDX-License-Identifier: Apache-2.0 */
#include "delta.h"

void NJ_REF(delta_bwd_state)(int D, real *dr, real *dstates, const real *dout, const real *qkv,
                             const real *gates, const real *solve, const real *scores, int32_t B,
                             int32_t S, int32_t H, int32_t K)
{
    const int64_t size = (int64_t)D * D, width = (int64_t)H * D;
#pragma omp parallel for collapse(2)
    for (int32_t b = 0; b < B; b++)
        for (int32_t h = 0; h < H; h++) {
            const struct delta_columns at = delta_columns(D, H, K, h);
            real state[DELTA_D * DELTA_D] = {0}, du[CHUNK][DELTA_D];
            for (int32_t chunk = chunks_of(S) - 1; chunk >= 0; chunk--) {
                const int64_t n = chunk_at(b, h, chunk, H, S);
                const int64_t first = (int64_t)b * S + chunk * CHUNK;
                const int32_t rows = chunk_rows(S, chunk);
                const real *f = gates + n * DELTA_FACTORS * CHUNK;
                const real *q = qkv + first * at.row + at.q, *k = qkv + first * at.row + at.k;
                const real *from = dout + first * width + (int64_t)h * D;
                const real *t = solve + n * CHUNK * CHUNK, *p = scores + n * CHUNK * CHUNK;
                real *to = dr + first * width + (int64_t)h * D;
                memcpy(dstates + n * size, state, (size_t)size * sizeof *state);
                for (int32_t j = 0; j < rows; j++) {
                    for (int64_t c = 0; c < D; c++)
                        du[j][c] =
                            factor(f, DELTA_K_OUT, j) * dot(state + c * D, k + j * at.row, D);
                    for (int32_t i = 0; i < rows; i++)
                        add_scaled(du[j], p[i * CHUNK + j], from + i * width, D);
                }
                for (int32_t j = 0; j < rows; j++) {
                    memset(to + j * width, 0, (size_t)D * sizeof *to);
                    for (int32_t i = 0; i < rows; i++)
                        add_scaled(to + j * width, t[i * CHUNK + j], du[i], D);
                }
                for (int64_t c = 0; c < D; c++)
                    for (int64_t d = 0; d < D; d++) {
                        real to_q = 0, to_k = 0;
                        for (int32_t i = 0; i < rows; i++) {
                            to_q +=
                                factor(f, DELTA_Q_IN, i) * from[i * width + c] * q[i * at.row + d];
                            to_k += factor(f, DELTA_K_IN, i) * factor(f, DELTA_BETA, i) *
                                    to[i * width + c] * k[i * at.row + d];
                        }
                        state[c * D + d] =
                            factor(f, DELTA_CARRY, 0) * state[c * D + d] + (to_q - to_k);
                    }
            }
        }
}
