/* SPDX-License-Identifier: Apache-2.0 */
#include "attn_tile.h"

/* Add the part of query head a in the gradients of keys from j0 on (dk, dv: row stride a->ld). */
static void add_head(const struct attn_head *a, int32_t S, int32_t j0, int keys, const real *dout,
                     int ldo, const real *lse, const real *delta, real *dk, real *dv)
{
    real p[TILE_Q * TILE_K], ds[TILE_Q * TILE_K];
    for (int32_t i0 = j0 / TILE_Q * TILE_Q; i0 < S; i0 += TILE_Q) { /* no earlier row sees j0 */
        const int rows = min_i32(TILE_Q, S - i0);
        if (first_key(a, i0, rows) > j0)
            continue;
        const real *d = dout + (int64_t)i0 * ldo;
        tile_probabilities(a, i0, rows, j0, keys, d, ldo, lse + i0, delta + i0, p, ds);
        tile_tn(keys, a->D, rows, a->scale, ds, TILE_K, a->q + (int64_t)i0 * a->ld, a->ld, 1, dk,
                a->ld);
        tile_tn(keys, a->D, rows, 1, p, TILE_K, d, ldo, 1, dv, a->ld);
    }
}

static void clear(real *x, int ld, int rows, int D)
{
    for (int r = 0; r < rows; r++)
        for (int d = 0; d < D; d++)
            x[(int64_t)r * ld + d] = 0;
}

void NJ_REF(attn_bwd_dkv)(int D, real *dqkv, const real *dout, const real *qkv, const real *lse,
                          const real *delta, const int32_t *doc_start, int32_t B, int32_t S,
                          int32_t H, int32_t K, int32_t window, float scale)
{
    const int width = (H + 2 * K) * D, group = H / K, step = tile_keys(D);
#pragma omp parallel for collapse(3) schedule(dynamic)
    for (int32_t b = 0; b < B; b++) {
        for (int32_t kv = 0; kv < K; kv++) {
            for (int32_t j0 = 0; j0 < S; j0 += step) {
                const int64_t seq = (int64_t)b * S;
                const int keys = min_i32(step, S - j0);
                real *dk = dqkv + (seq + j0) * width + (int64_t)(H + kv) * D;
                real *dv = dk + (int64_t)K * D;
                clear(dk, width, keys, D);
                clear(dv, width, keys, D);
                for (int32_t h = kv * group; h < (kv + 1) * group; h++) {
                    const struct attn_head a =
                        attn_head_of(qkv + seq * width, doc_start ? doc_start + seq : NULL, h, H, K,
                                     D, window, scale);
                    const int64_t at = ((int64_t)b * H + h) * S;
                    add_head(&a, S, j0, keys, dout + seq * H * D + (int64_t)h * D, H * D, lse + at,
                             delta + at, dk, dv);
                }
            }
        }
    }
}
