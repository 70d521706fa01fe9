// SPDX-License-Identifier: Apache-2.0
//
// gemm.glsl: row-major C[M,N] = scale op(A) op(B) + beta C. A workgroup has a tile of 16 SIDE
// squared, a thread SIDE x SIDE of it; each sum goes over K in ascending order, in one thread, so that
// the tile has no part in the bits. A_TRANSPOSED,
// B_TRANSPOSED: the operand is stored as [K, M], [N, K].
#define NJ_THREADS 256
#include "common.glsl"

layout(push_constant, scalar) uniform nj_block
{
    layout(offset = 0) nj_f32 c;
    layout(offset = 8) nj_f32 a;
    layout(offset = 16) nj_f32 b;
    layout(offset = 24) int64_t lda;
    layout(offset = 32) int64_t ldb;
    layout(offset = 40) int64_t ldc;
    layout(offset = 48) int M;
    layout(offset = 52) int N;
    layout(offset = 56) int K;
    layout(offset = 60) float scale;
    layout(offset = 64) float beta;
    layout(offset = 68) uint nj_grid[3];
};

#include "grid.glsl"

const int LANES = 16, TILE = LANES * SIDE, DEPTH = 16, PITCH = TILE + 1;

shared float nj_a[DEPTH * PITCH], nj_b[DEPTH * PITCH];

float a_element(int m, int k)
{
    if (m >= M || k >= K)
        return 0.0;
    return A_TRANSPOSED ? from(a, k * lda).v[m] : from(a, m * lda).v[k];
}

float b_element(int k, int n)
{
    if (n >= N || k >= K)
        return 0.0;
    return B_TRANSPOSED ? from(b, n * ldb).v[k] : from(b, k * ldb).v[n];
}

// The fastest index of a thread is that of adjacent elements in memory.
void load_tiles(int m0, int n0, int k0)
{
    for (int e = thread(); e < TILE * DEPTH; e += NJ_THREADS) {
        const int am = A_TRANSPOSED ? e % TILE : e / DEPTH,
                  ak = A_TRANSPOSED ? e / TILE : e % DEPTH;
        const int bn = B_TRANSPOSED ? e / DEPTH : e % TILE,
                  bk = B_TRANSPOSED ? e % DEPTH : e / TILE;
        nj_a[ak * PITCH + am] = a_element(m0 + am, k0 + ak);
        nj_b[bk * PITCH + bn] = b_element(k0 + bk, n0 + bn);
    }
}

void store(int m, int n, float sum)
{
    if (m >= M || n >= N)
        return;
    nj_f32 to = from(c, m * ldc);
    to.v[n] = scale * sum + (beta == 0.0 ? 0.0 : beta * to.v[n]);
}

void main()
{
    if (!nj_begin())
        return;
    const int m0 = block_y() * TILE, n0 = block_x() * TILE;
    const int row = thread() / LANES, column = thread() % LANES;
    float sum[SIDE][SIDE], a_row[SIDE];
    NJ_UNROLL
    for (int i = 0; i < SIDE; i++) {
        NJ_UNROLL
        for (int j = 0; j < SIDE; j++)
            sum[i][j] = 0.0;
    }
    for (int k0 = 0; k0 < K; k0 += DEPTH) {
        barrier(); // the last tiles may still be read
        load_tiles(m0, n0, k0);
        barrier();
        for (int k = 0; k < DEPTH; k++) {
            NJ_UNROLL
            for (int i = 0; i < SIDE; i++)
                a_row[i] = nj_a[k * PITCH + row + i * LANES];
            NJ_UNROLL
            for (int j = 0; j < SIDE; j++) {
                const float b_column = nj_b[k * PITCH + column + j * LANES];
                NJ_UNROLL
                for (int i = 0; i < SIDE; i++)
                    sum[i][j] += a_row[i] * b_column;
            }
        }
    }
    NJ_UNROLL
    for (int i = 0; i < SIDE; i++) {
        NJ_UNROLL
        for (int j = 0; j < SIDE; j++)
            store(m0 + row + i * LANES, n0 + column + j * LANES, sum[i][j]);
    }
}
