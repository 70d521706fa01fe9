/* SPDX-License-Identifier: Apache-2.0 */
#include "kv_cache_q8.h"

void NJ_REF(kv_store_q8)(int D, int32_t *k, int32_t *v, real *kv_scale, const real *qkv,
                         const int32_t *slot, const int32_t *pos, int32_t N, int32_t H, int32_t K,
                         int32_t P, int32_t G)
{
    const int64_t width = (int64_t)(H + 2 * K) * D;
    (void)G;
#pragma omp parallel for
    for (int32_t n = 0; n < N; n++)
        for (int32_t kv = 0; kv < K && is_stored(slot, n, N, P); kv++) {
            const real *key = qkv + n * width + (int64_t)(H + kv) * D, *value = key + K * D;
            cache_put_q8(k, v, kv_scale, key, value, slot[n], pos[n], kv, K, P, D);
        }
}
