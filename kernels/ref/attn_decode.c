/* SPDX-License-Identifier: Apache-2.0 */
#include "attn_tile.h"
#include "decode.h"
#include "kv_cache.h"

/* One query over the keys of a chunk, one head of the cache: what a partial result holds. */
static void chunk(int D, real *part, const real *q, const real *k, const real *v, int keys,
                  int32_t P, real scale)
{
    const real log2_e = (real)1.4426950408889634;
    real s[DECODE_CHUNK], top = -(real)INFINITY, sum = 0;
    tile_nt(1, keys, D, scale, q, D, k, D, 0, s, keys);
    for (int j = 0; j < keys; j++)
        if (!(s[j] <= top)) /* takes a NaN, too */
            top = s[j];
    for (int j = 0; j < keys; j++) {
        s[j] = exp(s[j] - top);
        sum += s[j];
    }
    tile_nt(1, D, keys, 1, s, keys, v, P, 0, part, D);
    part[D + DECODE_TOP] = top * log2_e;
    part[D + DECODE_SUM] = sum;
}

void NJ_REF(attn_decode)(int D, real *o, real *part, real *k, real *v, const real *qkv,
                         const int32_t *slot, const int32_t *pos, int32_t R, int32_t H, int32_t K,
                         int32_t P, int32_t G, int32_t C, float scale)
{
    const int64_t width = (int64_t)(H + 2 * K) * D;
    (void)G;
#pragma omp parallel for
    for (int32_t r = 0; r < R; r++)
        for (int32_t kv = 0; kv < K && slot[r] >= 0; kv++)
            cache_put(k, v, qkv + r * width, slot[r], pos[r], kv, H, K, P, D);
#pragma omp parallel for
    for (int64_t i = 0; i < (int64_t)R * H; i++) {
        const int32_t r = (int32_t)(i / H), h = (int32_t)(i % H);
        for (int32_t c = 0; c < C && slot[r] >= 0 && c * DECODE_CHUNK <= pos[r]; c++) {
            const int32_t first = c * DECODE_CHUNK;
            const int64_t at = cache_at(slot[r], h / (H / K), K, P, D);
            real one[128 + DECODE_STATS];
            real *to = C == 1 ? one : part + (c * (int64_t)R * H + i) * (D + DECODE_STATS);
            chunk(D, to, qkv + r * width + (int64_t)h * D, k + at + (int64_t)first * D,
                  v + at + first, min_i32(DECODE_CHUNK, pos[r] + 1 - first), P, (real)scale);
            for (int d = 0; d < D && C == 1; d++)
                o[i * D + d] = one[d] / one[D + DECODE_SUM];
        }
    }
}
