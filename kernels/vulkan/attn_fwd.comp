// SPDX-License-Identifier: Apache-2.0
#define ROWS 128
#include "attn.glsl"

shared float nj_scores[ROWS * PITCH], nj_values[TILE * PART], nj_top[ROWS], nj_sum[ROWS],
    nj_keep[ROWS];

// Turn the scores of the tile of keys from j0 on into probabilities relative to the largest score so far. nj_keep is
// the factor for earlier sums and outputs. One thread computes a row.
void softmax_tile(int row)
{
    const float before = nj_top[row];
    float top = before, sum = 0.0;
    for (int j = 0; j < TILE; j++) {
        const float x = nj_scores[row * PITCH + j];
        top = x <= top ? top : x; // true for NaN, too
    }
    const float base = top == MINUS_INFINITY ? 0.0 : top; // the row sees no key yet
    for (int j = 0; j < TILE; j++) {
        const float p = nj_exp(nj_scores[row * PITCH + j] - base);
        nj_scores[row * PITCH + j] = p;
        sum += p;
    }
    nj_keep[row] = nj_exp(before - base);
    nj_sum[row] = nj_sum[row] * nj_keep[row] + sum;
    nj_top[row] = top;
}

void score_tile(head_rows queries, head_rows keys, int sequence)
{
    float s[4][SCORES];
    tile_dot(queries, keys, s);
    NJ_UNROLL
    for (int i = 0; i < 4; i++) {
        NJ_UNROLL
        for (int j = 0; j < SCORES; j++) {
            const int row = own_row() + i, key = own_lane() + j * GROUP;
            const bool seen = is_visible(queries.first + row, keys.first + key, sequence);
            nj_scores[row * PITCH + key] = seen ? scale * s[i][j] : MINUS_INFINITY;
        }
    }
}

void load_values(head_rows values, int column)
{
    for (int e = thread(); e < TILE * PART; e += NJ_THREADS)
        nj_values[e] = head_element(values, e / PART, column + e % PART);
}

void store_rows(float sums[4][COLUMNS], int sequence, int head, int i0)
{
    NJ_UNROLL
    for (int i = 0; i < 4; i++) {
        const int row = own_row() + i;
        if (i0 + row >= S)
            continue;
        nj_t to = from_t(o, ((int64_t(sequence) * S + i0 + row) * H + head) * D);
        NJ_UNROLL
        for (int c = 0; c < COLUMNS; c++)
            put(to, own_lane() + c * GROUP, sums[i][c] / nj_sum[row]);
    }
    if (thread() < ROWS && i0 + thread() < S)
        from(lse, (int64_t(sequence) * H + head) * S + i0).v[thread()] =
            nj_top[thread()] + nj_log(nj_sum[thread()]);
}

void nj_attn_fwd()
{
    const int head = block_x(), sequence = block_y(), i0 = block_z() * ROWS, group = head / (H / K);
    const int end = min(i0 + ROWS, S);
    float sums[4][COLUMNS];
    NJ_UNROLL
    for (int i = 0; i < 4; i++) {
        NJ_UNROLL
        for (int c = 0; c < COLUMNS; c++)
            sums[i][c] = 0.0;
    }
    if (thread() < ROWS) {
        nj_top[thread()] = MINUS_INFINITY;
        nj_sum[thread()] = 0.0;
    }
    for (int j0 = first_tile(i0, sequence); j0 < end; j0 += TILE) {
        score_tile(query_rows(qkv, sequence, head, i0), key_rows(qkv, sequence, group, j0),
                   sequence);
        head_rows values = value_rows(qkv, sequence, group, j0);
        load_values(values, 0);
        barrier();
        if (thread() < ROWS)
            softmax_tile(thread());
        barrier();
        NJ_UNROLL
        for (int i = 0; i < 4; i++) {
            NJ_UNROLL
            for (int c = 0; c < COLUMNS; c++)
                sums[i][c] *= nj_keep[own_row() + i];
        }
        NJ_UNROLL
        for (int first = 0; first < COLUMNS; first += MINE) {
            if (first > 0) {
                barrier(); // the part before may still be read
                load_values(values, first * GROUP);
                barrier();
            }
            for (int j = 0; j < TILE; j++) {
                NJ_UNROLL
                for (int c = 0; c < MINE; c++) {
                    const float v = nj_values[j * PART + own_lane() + c * GROUP];
                    NJ_UNROLL
                    for (int i = 0; i < 4; i++)
                        sums[i][first + c] += nj_scores[(own_row() + i) * PITCH + j] * v;
                }
            }
        }
    }
    store_rows(sums, sequence, head, i0);
}
