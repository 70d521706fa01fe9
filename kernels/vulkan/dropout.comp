// SPDX-License-Identifier: Apache-2.0
#include "philox.glsl"

// Return p 2^32, rounded down. p has 24 bits, so it is computed in two halves of 16 bits.
uint least_kept()
{
    const float high = floor(p * 65536.0), low = floor((p * 65536.0 - high) * 65536.0);
    return (uint(high) << 16) + uint(low);
}

void nj_dropout()
{
    const uint least = least_kept();
    const float scale = 1.0 / (1.0 - p);
    for (int64_t b = flat_thread(); b < (n + 3) / 4; b += flat_threads()) {
        const uvec4 words = philox(uint64_t(b), uint(mask), 0u, uint(key.v[0]), uint(key.v[1]));
        for (int i = 0; i < 4 && 4 * b + i < n; i++)
            put(from_t(y, 4 * b), i, words[i] >= least ? get(from_t(x, 4 * b), i) * scale : 0.0);
    }
}
