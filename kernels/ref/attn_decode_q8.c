/* SPDX-License-Identifier: Apache-2.0 */
#include "decode_part.h"
#include "kv_cache_q8.h"

/* Compute one query over the keys of a chunk, in one head of the cache, which has P places, TILE_K keys at a time. */
static void chunk(int D, real *part, const real *q, const int8_t *k, const int8_t *v,
                  const real *scales, struct chunk_keys keys, int32_t P, real scale)
{
    real s[DECODE_CHUNK], tile[TILE_K * DECODE_D_MAX];
    for (int j0 = 0; j0 < keys.count; j0 += TILE_K) {
        const int n = min_i32(TILE_K, keys.count - j0);
        for (int j = 0; j < n; j++) {
            const int64_t place = (keys.first + j0 + j) % P;
            for (int d = 0; d < D; d++)
                tile[j * D + d] = (real)k[place * D + d] * scales[2 * place];
        }
        tile_nt(1, n, D, scale, q, D, tile, D, 0, s + j0, n);
    }
    part_softmax(part, D, s, keys);
    for (int j0 = 0; j0 < keys.count; j0 += TILE_K) {
        const int n = min_i32(TILE_K, keys.count - j0);
        for (int j = 0; j < n; j++) {
            const int64_t place = (keys.first + j0 + j) % P;
            for (int d = 0; d < D; d++)
                tile[d * TILE_K + j] = (real)v[value_at(place, d, D)] * scales[2 * place + 1];
        }
        tile_nt(1, D, n, 1, s + j0, n, tile, TILE_K, j0 > 0, part, D);
    }
}

void NJ_REF(attn_decode_q8)(int D, real *o, real *part, int32_t *k, int32_t *v, real *kv_scale,
                            const real *qkv, const real *bias, const real *inv_freq,
                            const real *sink, const int32_t *slot, const int32_t *pos, int32_t R,
                            int32_t H, int32_t K, int32_t P, int32_t G, int32_t C, int32_t window,
                            float scale, float amplitude)
{
    const int64_t width = (int64_t)(H + 2 * K) * D, heads = (int64_t)R * H;
    (void)G;
#pragma omp parallel for
    for (int32_t r = 0; r < R; r++)
        for (int32_t kv = 0; kv < K && slot[r] >= 0; kv++) {
            const struct new_row row = {qkv + r * width, bias, inv_freq, amplitude, pos[r], D};
            real key[DECODE_D_MAX], value[DECODE_D_MAX];
            new_head(key, &row, H + kv, true);
            new_head(value, &row, H + K + kv, false);
            cache_put_q8(k, v, kv_scale, key, value, slot[r], pos[r], kv, K, P, D);
        }
#pragma omp parallel for
    for (int64_t i = 0; i < heads; i++) {
        const int32_t r = (int32_t)(i / H), h = (int32_t)(i % H);
        const struct new_row row = {qkv + r * width, bias, inv_freq, amplitude, pos[r], D};
        const int64_t at = cache_at(slot[r], h / (H / K), K, P, D);
        const int32_t chunks = slot[r] < 0 ? 0 : pos[r] / DECODE_CHUNK + 1;
        real total[DECODE_D_MAX + DECODE_STATS], one[DECODE_D_MAX + DECODE_STATS];
        real q[DECODE_D_MAX];
        new_head(q, &row, h, true);
        const int32_t first = first_position(pos[r], window) / DECODE_CHUNK;
        for (int32_t c = first; c < chunks; c++) {
            const struct chunk_keys keys = chunk_keys(c, pos[r], window);
            real *its = c > first ? one : total;
            real *to = C > 1 ? part + (c * heads + i) * (D + DECODE_STATS) : its;
            chunk(D, to, q, (const int8_t *)k + at, (const int8_t *)v + at, kv_scale + 2 * (at / D),
                  keys, P, (real)scale);
            if (C == 1 && c > first)
                part_add(total, one, D);
        }
        if (C == 1 && chunks > 0)
            part_finish(o + i * D, total, D, sink ? sink + h : NULL);
    }
}
