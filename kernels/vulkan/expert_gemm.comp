// SPDX-License-Identifier: Apache-2.0
//
// Tiles of ROWS places and COLUMNS columns. A thread has every 16th of both.
const int ROWS = 64, COLUMNS = 128, DEPTH = 16, EACH_ROW = ROWS / 16, EACH_COLUMN = COLUMNS / 16;

shared float nj_a[DEPTH * (ROWS + 1)], nj_b[DEPTH * (COLUMNS + 1)];

// Copy columns [k, k + DEPTH) of the tile's rows of x and w; what lies outside becomes 0.
void load_tile(int e, int place_of, int rows, int column, int k)
{
    for (int i = thread(); i < ROWS * DEPTH; i += NJ_THREADS) {
        const int r = i / DEPTH, c = i % DEPTH, p = place_of + min(r, rows - 1);
        const int64_t from_row = given(row) ? row.v[p] : p;
        const bool valid = r < rows && k + c < C;
        nj_a[c * (ROWS + 1) + r] = valid ? get(from_t(x, from_row * C), k + c) : 0.0;
    }
    for (int i = thread(); i < COLUMNS * DEPTH; i += NJ_THREADS) {
        const int m = column + i / DEPTH, c = i % DEPTH;
        const bool valid = m < M && k + c < C;
        nj_b[c * (COLUMNS + 1) + i / DEPTH] =
            valid ? get(from_t(w, (int64_t(e) * M + m) * C), k + c) : 0.0;
    }
}

void multiply(int e, int place_of, int rows, int column)
{
    const int r0 = thread() / 16, c0 = thread() % 16;
    float sum[EACH_ROW * EACH_COLUMN];
    NJ_UNROLL
    for (int i = 0; i < EACH_ROW * EACH_COLUMN; i++)
        sum[i] = 0.0;
    for (int k = 0; k < C; k += DEPTH) {
        barrier(); // the last tile may still be read
        load_tile(e, place_of, rows, column, k);
        barrier();
        for (int c = 0; c < DEPTH; c++)
            NJ_UNROLL
        for (int i = 0; i < EACH_ROW; i++)
            NJ_UNROLL
        for (int j = 0; j < EACH_COLUMN; j++)
            sum[i * EACH_COLUMN + j] +=
                nj_a[c * (ROWS + 1) + r0 + 16 * i] * nj_b[c * (COLUMNS + 1) + c0 + 16 * j];
    }
    NJ_UNROLL
    for (int i = 0; i < EACH_ROW; i++)
        NJ_UNROLL
    for (int j = 0; j < EACH_COLUMN; j++) {
        const int r = r0 + 16 * i, m = column + c0 + 16 * j;
        if (r < rows && m < M) {
            const float plus = given(bias) ? get(from_t(bias, int64_t(e) * M), m) : 0.0;
            put(from_t(y, int64_t(place_of + r) * ld), m, sum[i * EACH_COLUMN + j] + plus);
        }
    }
}

// Block b has tiles b, b + grid, ..., in order of experts.
void nj_expert_gemm()
{
    const int across = ceil_div(M, COLUMNS);
    int next = block_x();
    for (int e = 0; e < E; e++) {
        const int start = first.v[e], rows = first.v[e + 1] - start;
        const int tiles = ceil_div(rows, ROWS) * across;
        for (; next < tiles; next += 2 * G) {
            const int r = next / across * ROWS;
            multiply(e, start + r, rows - r, next % across * COLUMNS);
        }
        next -= tiles;
    }
}
