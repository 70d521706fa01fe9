// SPDX-License-Identifier: Apache-2.0
const int ROWS = 8; // rows of a block

void nj_row_gather()
{
    const int first = block_x() * ROWS, last = min(first + ROWS, M);
    for (int m = first; m < last; m++) {
        const int r = given(index) ? index.v[m] : m;
        nj_t to = from_t(dst, int64_t(m) * C), row = from_t(src, int64_t(max(r, 0)) * C);
        for (int c = thread(); c < C; c += NJ_THREADS)
            put(to, c, r < 0 ? 0.0 : scale * get(row, c));
    }
}
