// SPDX-License-Identifier: Apache-2.0

// A block has ROWS rows of COLUMNS columns, as the contract's grid has it; a thread keeps its column.
const int ROWS = 32, COLUMNS = 512 / int(T_BYTES);

void nj_bias_add()
{
    const int c = block_y() * COLUMNS + thread() % COLUMNS;
    const int first = block_x() * ROWS, last = min(first + ROWS, N);
    for (int n = first + thread() / COLUMNS; n < last && c < C; n += NJ_THREADS / COLUMNS) {
        nj_t row = from_t(y, int64_t(n) * C);
        put(row, c, get(row, c) + get(b, c));
    }
}
