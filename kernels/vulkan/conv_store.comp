// SPDX-License-Identifier: Apache-2.0
const int COLUMNS = 1024; // in a block

void nj_conv_store()
{
    const int e = block_x(), s = e % S, to = slot.v[e], start = doc_start.v[e];
    const int end = min(X, block_y() * COLUMNS + COLUMNS);
    if (to < 0 || (s + 1 < S && doc_start.v[e + 1] == start))
        return;
    for (int t = 0; t < L - 1; t++) {
        const int n = s - L + 2 + t;
        const int64_t at = int64_t(e - s + n) * ld;
        nj_f32 row = from(state, (int64_t(to) * (L - 1) + t) * X);
        for (int c = block_y() * COLUMNS + thread(); c < end; c += NJ_THREADS) {
            float u = 0.0;
            if (n >= start)
                u = get(from_t(x, at), c) * (given(gate_in) ? get(from_t(gate_in, at), c) : 1.0);
            row.v[c] = u;
        }
    }
}
