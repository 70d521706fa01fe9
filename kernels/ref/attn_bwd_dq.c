/* SPDX-License-Identifier: Apache-2.0 */
#include "attn_tile.h"

void NJ_REF(attn_bwd_dq)(int D, real *dqkv, const real *dout, const real *qkv, const real *o,
                         const real *lse, const real *delta, const int32_t *doc_start, int32_t B,
                         int32_t S, int32_t H, int32_t K, float scale)
{
    (void)o; /* enters through delta */
    const int width = (H + 2 * K) * D;
#pragma omp parallel for collapse(3) schedule(dynamic)
    for (int32_t b = 0; b < B; b++) {
        for (int32_t h = 0; h < H; h++) {
            for (int32_t i0 = 0; i0 < S; i0 += TILE_Q) {
                const int64_t seq = (int64_t)b * S, at = ((int64_t)b * H + h) * S + i0;
                const struct attn_head a = attn_head_of(
                    qkv + seq * width, doc_start ? doc_start + seq : NULL, h, H, K, D, scale);
                const int rows = min_i32(TILE_Q, S - i0);
                const real *d = dout + (seq + i0) * H * D + (int64_t)h * D;
                real *dq = dqkv + (seq + i0) * width + (int64_t)h * D;
                real p[TILE_Q * TILE_K], ds[TILE_Q * TILE_K], beta = 0;
                for (int32_t j0 = first_key(i0, rows, a.doc_start); j0 < i0 + rows; j0 += TILE_K) {
                    const int keys = min_i32(TILE_K, i0 + rows - j0);
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
