// SPDX-License-Identifier: Apache-2.0
#include "rope.glsl"

// Rotate the pairs of the query and key heads of a row.
void rotate_row(nj_t row, int position)
{
    const int half_d = D / 2;
    for (int j = thread(); j < (H + K) * half_d; j += NJ_THREADS) {
        const int i = j % half_d, lo = j / half_d * D + i, hi = lo + half_d;
        float a = get(row, lo), b = get(row, hi);
        if (given(bias)) {
            a += get(bias, lo);
            b += get(bias, hi);
        }
        rope_pair(a, b, position, i);
        put(row, lo, a);
        put(row, hi, b);
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
