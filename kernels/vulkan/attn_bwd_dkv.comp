// SPDX-License-Identifier: Apache-2.0
#define ROWS 64
#include "attn.glsl"

shared float nj_probabilities[ROWS * PITCH], nj_slopes[ROWS * PITCH];
shared float nj_queries[TILE * PART], nj_gradients[TILE * PART];

// Compute probabilities and gradients of scores for the block's keys, as rows, and a tile of query rows.
void slope_tile(int sequence, int head, int group, int i0, int j0)
{
    const int64_t place = (int64_t(sequence) * H + head) * S;
    float s[4][SCORES], dp[4][SCORES];
    tile_dot(key_rows(qkv, sequence, group, j0), query_rows(qkv, sequence, head, i0), s);
    tile_dot(value_rows(qkv, sequence, group, j0), output_rows(dout, sequence, head, i0), dp);
    NJ_UNROLL
    for (int i = 0; i < 4; i++) {
        NJ_UNROLL
        for (int j = 0; j < SCORES; j++) {
            const int key = own_row() + i, at = own_lane() + j * GROUP, row = i0 + at;
            float p = 0.0, slope = 0.0;
            if (is_visible(row, j0 + key, sequence)) {
                p = nj_exp(scale * s[i][j] - from(lse, place).v[row]);
                slope = p * (dp[i][j] - from(delta, place).v[row]);
            }
            nj_probabilities[key * PITCH + at] = p;
            nj_slopes[key * PITCH + at] = slope;
        }
    }
}

void load_tiles(int sequence, int head, int i0, int column)
{
    head_rows queries = query_rows(qkv, sequence, head, i0);
    head_rows gradients = output_rows(dout, sequence, head, i0);
    for (int e = thread(); e < TILE * PART; e += NJ_THREADS) {
        nj_queries[e] = head_element(queries, e / PART, column + e % PART);
        nj_gradients[e] = head_element(gradients, e / PART, column + e % PART);
    }
}

void add_part(inout float dk[4][COLUMNS], inout float dv[4][COLUMNS], int first)
{
    for (int r = 0; r < TILE; r++) {
        NJ_UNROLL
        for (int c = 0; c < MINE; c++) {
            const float q = nj_queries[r * PART + own_lane() + c * GROUP];
            const float d = nj_gradients[r * PART + own_lane() + c * GROUP];
            NJ_UNROLL
            for (int i = 0; i < 4; i++) {
                dk[i][first + c] += nj_slopes[(own_row() + i) * PITCH + r] * q;
                dv[i][first + c] += nj_probabilities[(own_row() + i) * PITCH + r] * d;
            }
        }
    }
}

void store_rows(head_rows to, float sums[4][COLUMNS], float factor)
{
    NJ_UNROLL
    for (int i = 0; i < 4; i++) {
        const int key = to.first + own_row() + i;
        if (key < S) {
            NJ_UNROLL
            for (int c = 0; c < COLUMNS; c++)
                put(from_t(to.base, key * to.pitch), own_lane() + c * GROUP, factor * sums[i][c]);
        }
    }
}

void nj_attn_bwd_dkv()
{
    const int group = block_x(), sequence = block_y(), j0 = block_z() * ROWS, heads = H / K;
    float dk[4][COLUMNS], dv[4][COLUMNS];
    NJ_UNROLL
    for (int i = 0; i < 4; i++) {
        NJ_UNROLL
        for (int c = 0; c < COLUMNS; c++)
            dk[i][c] = dv[i][c] = 0.0;
    }
    for (int head = group * heads; head < (group + 1) * heads; head++)
        for (int i0 = j0; i0 < S; i0 += TILE) { // no earlier row sees j0
            if (first_row_seen(i0, sequence) >= j0 + ROWS)
                break; // no later row sees j0 either
            slope_tile(sequence, head, group, i0, j0);
            NJ_UNROLL
            for (int first = 0; first < COLUMNS; first += MINE) {
                if (first > 0)
                    barrier(); // the part before may still be read
                load_tiles(sequence, head, i0, first * GROUP);
                barrier();
                add_part(dk, dv, first);
            }
        }
    store_rows(key_rows(dqkv, sequence, group, j0), dk, scale);
    store_rows(value_rows(dqkv, sequence, group, j0), dv, 1.0);
}
