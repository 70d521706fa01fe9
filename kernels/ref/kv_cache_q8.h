/* SPDX-License-Identifier: Apache-2.0
 *
 * kv_cache_q8.h: the 8-bit cache: kv_cache.h with bytes, and with two scales per position, for the key and the value.
 */
#ifndef NOJIT_KV_CACHE_Q8_H
#define NOJIT_KV_CACHE_Q8_H

#include "kv_cache.h"

/* Store the levels of x[n], `stride` bytes apart, computed in float32 as on a GPU. Return their scale. */
static inline real levels_of(int8_t *to, int64_t stride, const real *x, int n)
{
    float most = 0;
    for (int i = 0; i < n; i++)
        most = fmaxf(most, fabsf((float)x[i]));
    const float inverse = most > 0 ? (float)KV_LEVELS / most : 0;
    for (int i = 0; i < n; i++)
        to[i * stride] = (int8_t)rintf((float)x[i] * inverse);
    return (real)(most / (float)KV_LEVELS);
}

static inline void cache_put_q8(int32_t *k, int32_t *v, real *kv_scale, const real *key,
                                const real *value, int32_t slot, int32_t pos, int32_t kv, int32_t K,
                                int32_t P, int D)
{
    const int64_t at = cache_at(slot, kv, K, P, D), place = pos % P;
    real *scales = kv_scale + 2 * (at / D + place);
    scales[0] = levels_of((int8_t *)k + at + place * D, 1, key, D);
    scales[1] = levels_of((int8_t *)v + at + value_at(place, 0, D), CACHE_BLOCK, value, D);
}

#endif
