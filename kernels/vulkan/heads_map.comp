// SPDX-License-Identifier: Apache-2.0

// Block p has the rows p, p + P, ...; a thread has the same columns of each, and their sums.
void nj_heads_map()
{
    const int heads = H + 2 * K, width = heads * D_out;
    for (int c = thread(); c < width; c += NJ_THREADS) {
        const int h = c / D_out, j = c % D_out;
        const int source = h < H + K ? map.v[j] : map_v.v[j];
        const int column = h * D_in + source;
        float offset = 0.0, sum = 0.0;
        if (source >= 0 && given(bias))
            offset = get(bias, column);
        for (int64_t n = block_x(); n < N; n += P) {
            float a = 0.0;
            if (source >= 0)
                a = as_t(get(from_t(x, n * (heads * D_in)), column) + offset);
            put(from_t(y, n * width), c, a);
            sum += a;
        }
        if (given(part))
            from(part, int64_t(block_x()) * width).v[c] = sum;
    }
}
