/* SPDX-License-Identifier: Apache-2.0 */
#include "attn_tile.h"

void NJ_REF(attn_decode)(int D, real *o, const real *qkv, int32_t S, int32_t H, int32_t K,
                         float scale)
{
#pragma omp parallel for
    for (int32_t h = 0; h < H; h++) {
        const struct attn_head a = attn_head_of(qkv, NULL, h, H, K, D, scale);
        attn_rows(&a, S - 1, 1, o + (int64_t)h * D, H * D, NULL);
    }
}
