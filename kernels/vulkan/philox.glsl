// SPDX-License-Identifier: Apache-2.0
//
// philox.glsl: random words as a function of their position.

// Return Philox4x32-10 with counter (number mod 2^32, number / 2^32, c2, c3) and key (k0, k1).
uvec4 philox(uint64_t number, uint c2, uint c3, uint k0, uint k1)
{
    uvec4 c = uvec4(uint(number), uint(number >> 32), c2, c3);
    for (int turn = 0; turn < 10; turn++) {
        uint a_high, a_low, b_high, b_low;
        umulExtended(0xD2511F53u, c.x, a_high, a_low);
        umulExtended(0xCD9E8D57u, c.z, b_high, b_low);
        c = uvec4(b_high ^ c.y ^ k0, b_low, a_high ^ c.w ^ k1, a_low);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}
