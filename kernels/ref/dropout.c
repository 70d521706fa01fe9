/* SPDX-License-Identifier: Apache-2.0 */
#include "philox.h"

void NJ_REF(dropout)(real *y, const real *x, const int32_t *key, int64_t n, float p, int32_t mask)
{
    const uint32_t least = (uint32_t)((double)p * 0x1p32);
    const real scale = 1 / (1 - (real)p);
#pragma omp parallel for
    for (int64_t block = 0; block < (n + 3) / 4; block++) {
        uint32_t w[4];
        philox((uint64_t)block, (uint32_t)mask, 0, (uint32_t)key[0], (uint32_t)key[1], w);
        for (int64_t i = 4 * block; i < 4 * block + 4 && i < n; i++)
            y[i] = w[i % 4] >= least ? x[i] * scale : 0;
    }
}
