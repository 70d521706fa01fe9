// SPDX-License-Identifier: Apache-2.0
//
// attn.glsl: functions that the attention shaders share. A block has ROWS rows of one side (queries, or keys for the
// gradient of keys and values) and goes through the other side in tiles of TILE. Scores exist as one tile in shared
// memory; nothing of size S x S does. GROUP threads share four rows.

const int TILE = 16, GROUP = NJ_THREADS * 4 / ROWS, SCORES = TILE / GROUP, COLUMNS = D / GROUP;
// The columns of a tile that are in shared memory at a time, and those of them that are one thread's.
const int PART = D < 128 ? D : 128, MINE = PART / GROUP;
// pitch of a row in shared memory, so that rows begin in different banks
const int PITCH = TILE + 1;

shared float nj_own[ROWS * PITCH], nj_other[TILE * PITCH];

int own_row() // returns the first of this thread's four rows
{
    return thread() / GROUP * 4;
}
int own_lane()
{
    return thread() % GROUP;
}

// Rows of one head: element d of row r is base[r * pitch + d]; rows from `count` on are 0.
struct head_rows {
    nj_t base;
    int64_t pitch;
    int first, count;
};

float head_element(head_rows a, int r, int d)
{
    if (a.first + r >= a.count)
        return 0.0;
    return get(from_t(a.base, int64_t(a.first + r) * a.pitch), d);
}

// Compute the dot products of this thread's rows of a with its rows of b, summed in the order of d.
void tile_dot(head_rows a, head_rows b, out float s[4][SCORES])
{
    NJ_UNROLL
    for (int i = 0; i < 4; i++) {
        NJ_UNROLL
        for (int j = 0; j < SCORES; j++)
            s[i][j] = 0.0;
    }
    for (int d0 = 0; d0 < D; d0 += TILE) {
        barrier(); // the last part may still be read
        for (int e = thread(); e < ROWS * TILE; e += NJ_THREADS)
            nj_own[e / TILE * PITCH + e % TILE] = head_element(a, e / TILE, d0 + e % TILE);
        for (int e = thread(); e < TILE * TILE; e += NJ_THREADS)
            nj_other[e / TILE * PITCH + e % TILE] = head_element(b, e / TILE, d0 + e % TILE);
        barrier();
        for (int d = 0; d < TILE; d++) {
            NJ_UNROLL
            for (int j = 0; j < SCORES; j++) {
                const float other = nj_other[(own_lane() + j * GROUP) * PITCH + d];
                NJ_UNROLL
                for (int i = 0; i < 4; i++)
                    s[i][j] += nj_own[(own_row() + i) * PITCH + d] * other;
            }
        }
    }
}

int first_row_seen(int row, int sequence)
{
    const int start = given(doc_start) ? from_i32(doc_start, int64_t(sequence) * S).v[row] : 0;
    return window > 0 ? max(start, row - window + 1) : start;
}

bool is_visible(int row, int key, int sequence)
{
    return row < S && key <= row && key >= first_row_seen(row, sequence);
}

// Return the first tile of keys that some of the block's query rows see: rows see no key before the first key that the
// first of them sees, since documents follow one another and windows move on.
int first_tile(int row, int sequence)
{
    return first_row_seen(row, sequence) / TILE * TILE;
}

head_rows query_rows(nj_t a, int sequence, int head, int first)
{
    const int64_t pitch = int64_t(H + 2 * K) * D;
    return head_rows(from_t(a, int64_t(sequence) * S * pitch + int64_t(head) * D), pitch, first, S);
}
head_rows key_rows(nj_t a, int sequence, int head, int first)
{
    return query_rows(a, sequence, H + head, first);
}
head_rows value_rows(nj_t a, int sequence, int head, int first)
{
    return query_rows(a, sequence, H + K + head, first);
}
head_rows output_rows(nj_t a, int sequence, int head, int first)
{
    const int64_t pitch = int64_t(H) * D;
    return head_rows(from_t(a, int64_t(sequence) * S * pitch + int64_t(head) * D), pitch, first, S);
}
