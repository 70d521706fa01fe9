// SPDX-License-Identifier: Apache-2.0
#include "rope.glsl"

// Pairs of the query and key heads of a row.
void rotate_row(nj_t row, int position)
{
    const int half_d = D / 2;
    for (int j = thread(); j < (H + K) * half_d; j += NJ_THREADS) {
        const int i = j % half_d, lo = j / half_d * D + i, hi = lo + half_d;
        float sin_a, cos_a, a = get(row, lo), b = get(row, hi);
        rope_turn(position, i, sin_a, cos_a);
        if (given(bias)) {
            a += get(bias, lo);
            b += get(bias, hi);
        }
        put(row, lo, a * cos_a - b * sin_a);
        put(row, hi, b * cos_a + a * sin_a);
    }
}

void nj_rope_fwd()
{
    const int width = (H + 2 * K) * D;
    for (int n = block_x(); n < N; n += int(nj_grid[0])) {
        nj_t row = from_t(qkv, int64_t(n) * width);
        rotate_row(row, pos.v[n]);
        for (int c = (H + K) * D + thread(); c < width && given(bias); c += NJ_THREADS)
            put(row, c, get(row, c) + get(bias, c));
    }
}
