/* SPDX-License-Identifier: Apache-2.0 */
#include "attn_tile.h"

static real dot(const real *x, const real *y, int D)
{
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int d = 0; d < D; d++)
        sum += x[d] * y[d];
    return sum;
}

void NJ_REF(attn_bwd_dq)(int D, real *dqkv, real *delta, const real *dout, const real *qkv,
                         const real *o, const real *lse, const int32_t *doc_start, int32_t B,
                         int32_t S, int32_t H, int32_t K, int32_t window, float scale)
{
    const int width = (H + 2 * K) * D, step = tile_keys(D);
#pragma omp parallel for collapse(3) schedule(dynamic)
    for (int32_t b = 0; b < B; b++) {
        for (int32_t h = 0; h < H; h++) {
            for (int32_t i0 = 0; i0 < S; i0 += TILE_Q) {
                const int64_t seq = (int64_t)b * S, at = ((int64_t)b * H + h) * S + i0;
                const struct attn_head a =
                    attn_head_of(qkv + seq * width, doc_start ? doc_start + seq : NULL, h, H, K, D,
                                 window, scale);
                const int rows = min_i32(TILE_Q, S - i0);
                const int64_t out = (seq + i0) * H * D + (int64_t)h * D;
                const real *d = dout + out;
                real *dq = dqkv + (seq + i0) * width + (int64_t)h * D;
                real p[TILE_Q * TILE_K], ds[TILE_Q * TILE_K], beta = 0;
                for (int r = 0; r < rows; r++)
                    delta[at + r] = dot(d + r * H * D, o + out + r * H * D, D);
                for (int32_t j0 = first_key(&a, i0, rows); j0 < i0 + rows; j0 += step) {
                    const int keys = min_i32(step, i0 + rows - j0);
                    tile_probabilities(&a, i0, rows, j0, keys, d, H * D, lse + at, delta + at, p,
                                       ds);
                    tile_nn(rows, D, keys, a.scale, ds, TILE_K, a.k + (int64_t)j0 * width, width,
                            beta, dq, width);
                    beta = 1;
                }
            }
        }
    }
}
