// SPDX-License-Identifier: Apache-2.0
#include "kv_cache.glsl"

const int ROWS = 32; // rows of a block

// Return whether a row has a slot, and no row P rows later takes its place.
bool is_stored(int n)
{
    return slot.v[n] >= 0 && !(n < N - P && slot.v[n + P] == slot.v[n]);
}

void nj_kv_store()
{
    const int64_t width = int64_t(H + 2 * K) * D;
    for (int n = block_x() * ROWS; n < min(block_x() * ROWS + ROWS, N); n++)
        if (is_stored(n))
            cache_put(from_t(qkv, n * width), slot.v[n], pos.v[n] % P, block_y());
}
