// SPDX-License-Identifier: Apache-2.0

// A block has 8 columns; thread r of a column adds rows r, r + ROWS, ...
const int COLUMNS = 8, ROWS = NJ_THREADS / COLUMNS;

void nj_colsum()
{
    const int c = block_x() * COLUMNS + thread() % COLUMNS;
    float sum = 0.0;
    for (int p = thread() / COLUMNS; p < P && c < C; p += ROWS)
        sum += from(part, int64_t(p) * C).v[c];
    nj_sums[thread()] = sum;
    for (int half_of = NJ_THREADS / 2; half_of >= COLUMNS; half_of /= 2) {
        barrier();
        if (thread() < half_of)
            nj_sums[thread()] += nj_sums[thread() + half_of];
    }
    if (thread() < COLUMNS && c < C)
        dst.v[c] += nj_sums[thread()];
}
