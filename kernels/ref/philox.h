/* SPDX-License-Identifier: Apache-2.0
 *
 * philox.h: random words as a function of their position.
 */
#ifndef NOJIT_REF_PHILOX_H
#define NOJIT_REF_PHILOX_H

#include "ref.h"

/* Compute Philox4x32-10 with counter (block mod 2^32, block / 2^32, c2, c3) and key (k0, k1). */
static inline void philox(uint64_t block, uint32_t c2, uint32_t c3, uint32_t k0, uint32_t k1,
                          uint32_t out[4])
{
    uint32_t c[4] = {(uint32_t)block, (uint32_t)(block >> 32), c2, c3};
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        const uint32_t c1 = c[1], c3_before = c[3];
        c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c3_before ^ k1;
        c[3] = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    memcpy(out, c, sizeof c);
}

#endif
