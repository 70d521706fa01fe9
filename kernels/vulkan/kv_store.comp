// SPDX-License-Identifier: Apache-2.0
#include "kv_cache.glsl"

const int ROWS = 32; // rows of a block

void nj_kv_store()
{
    const int64_t width = int64_t(H + 2 * K) * D;
    for (int n = block_x() * ROWS; n < min(block_x() * ROWS + ROWS, N); n++)
        if (slot.v[n] >= 0)
            cache_put(from_t(qkv, n * width), slot.v[n], pos.v[n], block_y());
}
