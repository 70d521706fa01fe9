// SPDX-License-Identifier: Apache-2.0
#include "rope.glsl"

// Pairs of the query and key heads of a row.
void rotate_row(nj_f32 row, int position)
{
    const int half_d = D / 2;
    for (int j = thread(); j < (H + K) * half_d; j += NJ_THREADS) {
        const int i = j % half_d, lo = j / half_d * D + i, hi = lo + half_d;
        float sin_a, cos_a, a = row.v[lo], b = row.v[hi];
        rope_turn(position, i, sin_a, cos_a);
        if (given(bias)) {
            a += bias.v[lo];
            b += bias.v[hi];
        }
        row.v[lo] = a * cos_a - b * sin_a;
        row.v[hi] = b * cos_a + a * sin_a;
    }
}

void nj_rope_fwd()
{
    const int width = (H + 2 * K) * D;
    for (int n = block_x(); n < N; n += int(nj_grid[0])) {
        nj_f32 row = from(qkv, int64_t(n) * width);
        rotate_row(row, pos.v[n]);
        for (int c = (H + K) * D + thread(); c < width && given(bias); c += NJ_THREADS)
            row.v[c] += bias.v[c];
    }
}
