// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 with counter (block mod 2^32, block / 2^32, mask, 0).
uvec4 philox(uint64_t number, uint mask_number, uint k0, uint k1)
{
    uvec4 c = uvec4(uint(number), uint(number >> 32), mask_number, 0u);
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

// p 2^32, rounded down: p has 24 bits, so halves of 16 hold it.
uint least_kept()
{
    const float high = floor(p * 65536.0), low = floor((p * 65536.0 - high) * 65536.0);
    return (uint(high) << 16) + uint(low);
}

void dropout()
{
    const uint least = least_kept();
    const float scale = 1.0 / (1.0 - p);
    for (int64_t b = flat_thread(); b < (n + 3) / 4; b += flat_threads()) {
        const uvec4 words = philox(uint64_t(b), uint(mask), uint(key.v[0]), uint(key.v[1]));
        for (int i = 0; i < 4 && 4 * b + i < n; i++)
            from(y, 4 * b).v[i] = words[i] >= least ? from(x, 4 * b).v[i] * scale : 0.0;
    }
}
