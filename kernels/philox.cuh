// SPDX-License-Identifier: Apache-2.0
//
// philox.cuh: random words as a function of their position.
#ifndef NOJIT_PHILOX_CUH
#define NOJIT_PHILOX_CUH

#include <stdint.h>

// Return four random words, a function of counter and key, by Philox4x32-10 (Salmon et al. 2011).
static __device__ __forceinline__ uint4 philox(uint4 c, uint2 k)
{
#pragma unroll
    for (int round = 0; round < 10; round++) {
        c = make_uint4(__umulhi(0xCD9E8D57u, c.z) ^ c.y ^ k.x, 0xCD9E8D57u * c.z,
                       __umulhi(0xD2511F53u, c.x) ^ c.w ^ k.y, 0xD2511F53u * c.x);
        k.x += 0x9E3779B9u;
        k.y += 0xBB67AE85u;
    }
    return c;
}

#endif
