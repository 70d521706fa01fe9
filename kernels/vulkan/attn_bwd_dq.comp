// SPDX-License-Identifier: Apache-2.0
#define ROWS 128
#include "attn.glsl"

shared float nj_slopes[ROWS * PITCH], nj_keys[TILE * PART], nj_lse[ROWS], nj_delta[ROWS];

// Compute the row sums of the output times its gradient.
void delta_row(int row, int sequence, int head, int i0)
{
    const int64_t at = ((int64_t(sequence) * S + i0 + row) * H + head) * D;
    nj_t a = from_t(dout, at), b = from_t(o, at);
    const int64_t place = (int64_t(sequence) * H + head) * S + i0;
    float sum = 0.0;
    for (int d = 0; d < D; d++)
        sum += get(a, d) * get(b, d);
    nj_delta[row] = sum;
    nj_lse[row] = from(lse, place).v[row];
    from(delta, place).v[row] = sum;
}

// Compute the gradients of the scores of a tile of keys.
void slope_tile(int sequence, int head, int group, int i0, int j0)
{
    float s[4][SCORES], dp[4][SCORES];
    tile_dot(query_rows(qkv, sequence, head, i0), key_rows(qkv, sequence, group, j0), s);
    tile_dot(output_rows(dout, sequence, head, i0), value_rows(qkv, sequence, group, j0), dp);
    NJ_UNROLL
    for (int i = 0; i < 4; i++) {
        NJ_UNROLL
        for (int j = 0; j < SCORES; j++) {
            const int row = own_row() + i, key = own_lane() + j * GROUP;
            float slope = 0.0;
            if (is_visible(i0 + row, j0 + key, sequence))
                slope = nj_exp(scale * s[i][j] - nj_lse[row]) * (dp[i][j] - nj_delta[row]);
            nj_slopes[row * PITCH + key] = slope;
        }
    }
}

void load_keys(head_rows keys, int column)
{
    for (int e = thread(); e < TILE * PART; e += NJ_THREADS)
        nj_keys[e] = head_element(keys, e / PART, column + e % PART);
}

void nj_attn_bwd_dq()
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
    if (thread() < ROWS && i0 + thread() < S)
        delta_row(thread(), sequence, head, i0);
    for (int j0 = first_tile(i0, sequence); j0 < end; j0 += TILE) {
        slope_tile(sequence, head, group, i0, j0);
        head_rows keys = key_rows(qkv, sequence, group, j0);
        NJ_UNROLL
        for (int first = 0; first < COLUMNS; first += MINE) {
            if (first > 0)
                barrier(); // the part before may still be read
            load_keys(keys, first * GROUP);
            barrier();
            for (int j = 0; j < TILE; j++) {
                NJ_UNROLL
                for (int c = 0; c < MINE; c++) {
                    const float k = nj_keys[j * PART + own_lane() + c * GROUP];
                    NJ_UNROLL
                    for (int i = 0; i < 4; i++)
                        sums[i][first + c] += nj_slopes[(own_row() + i) * PITCH + j] * k;
                }
            }
        }
    }
    NJ_UNROLL
    for (int i = 0; i < 4; i++) {
        const int row = i0 + own_row() + i;
        if (row >= S)
            continue;
        nj_t to = from_t(dqkv, (int64_t(sequence) * S + row) * (H + 2 * K) * D + int64_t(head) * D);
        NJ_UNROLL
        for (int c = 0; c < COLUMNS; c++)
            put(to, own_lane() + c * GROUP, scale * sums[i][c]);
    }
}
