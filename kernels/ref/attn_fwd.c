/* SPDX-License-Identifier: Apache-2.0 */
#include "attn_tile.h"

void NJ_REF(attn_fwd)(int D, real *o, real *lse, const real *qkv, const int32_t *doc_start,
                      int32_t B, int32_t S, int32_t H, int32_t K, int32_t window, float scale)
{
    const int width = (H + 2 * K) * D;
#pragma omp parallel for collapse(3) schedule(dynamic)
    for (int32_t b = 0; b < B; b++) {
        for (int32_t h = 0; h < H; h++) {
            for (int32_t i0 = 0; i0 < S; i0 += TILE_Q) {
                const int64_t seq = (int64_t)b * S;
                const struct attn_head a =
                    attn_head_of(qkv + seq * width, doc_start ? doc_start + seq : NULL, h, H, K, D,
                                 window, scale);
                attn_rows(&a, i0, min_i32(TILE_Q, S - i0), o + (seq + i0) * H * D + (int64_t)h * D,
                          H * D, lse + ((int64_t)b * H + h) * S + i0);
            }
        }
    }
}
