/* SPDX-License-Identifier: Apache-2.0 */
#include "ref.h"

/* Philox4x32-10 with counter (low, high, mask, 0). */
static void philox(uint64_t block, uint32_t mask, uint32_t k0, uint32_t k1, uint32_t out[4])
{
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), mask, 0};
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        const uint32_t c1 = c[1], c3 = c[3];
        c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c[3] = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof c);
}

void NJ_REF(dropout)(real *y, const real *x, const int32_t *key, int64_t n, float p, int32_t mask)
{
    const uint32_t least = (uint32_t)((double)p * 0x1p32);
    const real scale = 1 / (1 - (real)p);
#pragma omp parallel for
    for (int64_t block = 0; block < (n + 3) / 4; block++) {
        uint32_t w[4];
        philox((uint64_t)block, (uint32_t)mask, (uint32_t)key[0], (uint32_t)key[1], w);
        for (int64_t i = 4 * block; i < 4 * block + 4 && i < n; i++)
            y[i] = w[i % 4] >= least ? x[i] * scale : 0;
    }
}
