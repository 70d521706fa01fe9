#version 460
// SPDX-License-Identifier: Apache-2.0
//
// gemm.comp: row-major C[M,N] = scale op(A) op(B) + beta C, in float32. A key of gemm.keys defines a macro for each of
// its words: KEY_nt, KEY_nn or KEY_tn; KEY_f32, KEY_lp or KEY_lp_f32 for the types of operands and result, where lp is
// bfloat16; and KEY_large.
//
// A workgroup has a tile of 16 SIDE squared. It advances along K by DEPTH at a time, in shared memory with two buffers:
// one is read while the other is filled. A thread has SIDE x SIDE of the tile, as quads of four adjacent columns; each
// sum runs over K in ascending order, in one thread, so the size of the tile does not affect the bits. Rows are
// expanded by macros: their sums are then plain values to the driver, which has no loop to unroll.
#extension GL_GOOGLE_include_directive : require
#if defined(KEY_lp) || defined(KEY_lp_f32)
#define NJ_LP
#endif
#define NJ_THREADS 256
#include "common.glsl"

layout(push_constant, scalar) uniform nj_block
{
    layout(offset = 0) uint64_t c;
    layout(offset = 8) uint64_t a;
    layout(offset = 16) uint64_t b;
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

// Orientation of the operands: whether K is the fastest index, which makes A [M, K] and B [N, K].
#ifdef KEY_tn
const bool A_ALONG_K = false;
#else
const bool A_ALONG_K = true;
#endif
#ifdef KEY_nt
const bool B_ALONG_K = true;
#else
const bool B_ALONG_K = false;
#endif

// X(part, i) for each row, X(part) for each quad of columns.
#define NJ_FOUR_ROWS(X, part) X(part, 0) X(part, 1) X(part, 2) X(part, 3)
#ifdef KEY_large
#define NJ_EACH_ROW(X) NJ_FOUR_ROWS(X, 0) NJ_FOUR_ROWS(X, 1)
#define NJ_EACH_PART(X) X(0) X(1)
#define NJ_EACH_QUAD(X, part, i) X(part, i, 0) X(part, i, 1)
const int PARTS = 2;
#else
#define NJ_EACH_ROW(X) NJ_FOUR_ROWS(X, 0)
#define NJ_EACH_PART(X) X(0)
#define NJ_EACH_QUAD(X, part, i) X(part, i, 0)
const int PARTS = 1;
#endif
#define NJ_SUM(part, i, quad) sum[(4 * part + i) * PARTS + quad]

const int LANES = 16, SIDE = 4 * PARTS, TILE = LANES * SIDE, DEPTH = 4 * NJ_THREADS / TILE;
const int PITCH = TILE / 4 + 1; // one more, so that columns begin in different banks

shared vec4 nj_a[2 * DEPTH * PITCH], nj_b[2 * DEPTH * PITCH];

#ifdef NJ_LP
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer nj_quad
{
    uvec2 v;
};
vec4 quad_at(uint64_t at)
{
    const uvec2 two = nj_quad(at).v;
    return uintBitsToFloat(
        uvec4(two.x << 16, two.x & 0xffff0000u, two.y << 16, two.y & 0xffff0000u));
}
#else
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer nj_quad
{
    vec4 v;
};
vec4 quad_at(uint64_t at)
{
    return nj_quad(at).v;
}
#endif

bool quads_aligned(uint64_t base, int64_t ld, uint64_t bytes)
{
    return ((base | bytes * uint64_t(ld)) & (4ul * bytes - 1ul)) == 0ul;
}

// An operand as this thread loads it: one quad of each tile, from `outer` on in the direction of M or N and from k on
// in that of K.
struct operand {
    uint64_t at;
    int64_t step; // bytes to the quad of the next tile
    int outer, k;
    bool aligned;
};

operand operand_of(uint64_t base, int64_t ld, int first, bool along_k)
{
    operand r;
    r.outer = first + (along_k ? thread() / (DEPTH / 4) : thread() % (TILE / 4) * 4);
    r.k = along_k ? thread() % (DEPTH / 4) * 4 : thread() / (TILE / 4);
    const int64_t index = along_k ? r.outer * ld + r.k : r.k * ld + r.outer;
    r.at = base + T_BYTES * uint64_t(index);
    r.step = int64_t(T_BYTES) * DEPTH * (along_k ? 1l : ld);
    r.aligned = quads_aligned(base, ld, T_BYTES);
    return r;
}

// Return the quad, with zeros outside of the array, and advance to the next.
vec4 take_quad(inout operand r, int count, bool along_k)
{
    const int room = along_k ? (r.outer < count ? K - r.k : 0) : (r.k < K ? count - r.outer : 0);
    vec4 x = vec4(0.0);
    if (room >= 4 && r.aligned) {
        x = quad_at(r.at);
    } else {
        nj_t row = nj_t(r.at);
        if (room > 0)
            x.x = get(row, 0);
        if (room > 1)
            x.y = get(row, 1);
        if (room > 2)
            x.z = get(row, 2);
        if (room > 3)
            x.w = get(row, 3);
    }
    r.at += uint64_t(r.step);
    r.k += DEPTH;
    return x;
}

// Store both quads in a buffer, transposed if K is the fastest index.
void share_quads(int buffer_of, vec4 a_quad, vec4 b_quad)
{
    const int row = thread() / (DEPTH / 4), k = thread() % (DEPTH / 4) * 4;
    const int along = (buffer_of * DEPTH + k) * PITCH + row / 4;
    const int across = (buffer_of * DEPTH + thread() / (TILE / 4)) * PITCH + thread() % (TILE / 4);
    if (A_ALONG_K) {
        nj_a[along][row % 4] = a_quad.x;
        nj_a[along + PITCH][row % 4] = a_quad.y;
        nj_a[along + 2 * PITCH][row % 4] = a_quad.z;
        nj_a[along + 3 * PITCH][row % 4] = a_quad.w;
    } else {
        nj_a[across] = a_quad;
    }
    if (B_ALONG_K) {
        nj_b[along][row % 4] = b_quad.x;
        nj_b[along + PITCH][row % 4] = b_quad.y;
        nj_b[along + 2 * PITCH][row % 4] = b_quad.z;
        nj_b[along + 3 * PITCH][row % 4] = b_quad.w;
    } else {
        nj_b[across] = b_quad;
    }
}

// The type of the result, and access to a quad of it.
#ifdef KEY_lp
const uint64_t C_BYTES = 2ul;

vec4 c_quad(uint64_t at)
{
    return quad_at(at);
}
void c_put_quad(uint64_t at, vec4 x)
{
    nj_quad(at).v = uvec2(to_bf16(x.x) | to_bf16(x.y) << 16, to_bf16(x.z) | to_bf16(x.w) << 16);
}
float c_get(uint64_t at)
{
    return get(nj_t(at), 0);
}
void c_put(uint64_t at, float x)
{
    put(nj_t(at), 0, x);
}
#else
layout(buffer_reference, scalar, buffer_reference_align = 16) buffer nj_result
{
    vec4 v;
};
const uint64_t C_BYTES = 4ul;

vec4 c_quad(uint64_t at)
{
    return nj_result(at).v;
}
void c_put_quad(uint64_t at, vec4 x)
{
    nj_result(at).v = x;
}
float c_get(uint64_t at)
{
    return nj_f32(at).v[0];
}
void c_put(uint64_t at, float x)
{
    nj_f32(at).v[0] = x;
}
#endif

void store_one(uint64_t at, float x)
{
    c_put(at, x + (beta == 0.0 ? 0.0 : beta * c_get(at)));
}

void store(int m, int n, vec4 x)
{
    if (m >= M || n >= N)
        return;
    const uint64_t at = c + C_BYTES * uint64_t(m * ldc + n);
    if (n + 3 < N && quads_aligned(c, ldc, C_BYTES)) {
        c_put_quad(at, x + (beta == 0.0 ? vec4(0.0) : beta * c_quad(at)));
        return;
    }
    store_one(at, x.x);
    if (n + 1 < N)
        store_one(at + C_BYTES, x.y);
    if (n + 2 < N)
        store_one(at + 2ul * C_BYTES, x.z);
    if (n + 3 < N)
        store_one(at + 3ul * C_BYTES, x.w);
}

void main()
{
    if (!nj_begin())
        return;
    const int m0 = block_y() * TILE, n0 = block_x() * TILE;
    // 32 threads have 4 rows of quads and 8 columns of them, so they read few different quads at a time.
    const int row = thread() / 64 * 4 + thread() % 32 / 8;
    const int column = thread() / 32 % 2 * 8 + thread() % 8;
    operand a_next = operand_of(a, lda, m0, A_ALONG_K), b_next = operand_of(b, ldb, n0, B_ALONG_K);
    vec4 sum[SIDE * PARTS], a_part[PARTS], b_part[PARTS];
#define NJ_CLEAR(part, i, quad) NJ_SUM(part, i, quad) = vec4(0.0);
#define NJ_CLEAR_ROW(part, i) NJ_EACH_QUAD(NJ_CLEAR, part, i)
    NJ_EACH_ROW(NJ_CLEAR_ROW)
    vec4 a_quad = take_quad(a_next, M, A_ALONG_K), b_quad = take_quad(b_next, N, B_ALONG_K);
    share_quads(0, a_quad, b_quad);
    barrier();
    for (int k0 = 0, now = 0; k0 < K; k0 += DEPTH, now = 1 - now) {
        if (k0 + DEPTH < K) {
            a_quad = take_quad(a_next, M, A_ALONG_K);
            b_quad = take_quad(b_next, N, B_ALONG_K);
        }
        NJ_UNROLL
        for (int k = 0; k < DEPTH; k++) {
            const int at = (now * DEPTH + k) * PITCH;
#define NJ_READ(part)                                                                              \
    a_part[part] = nj_a[at + LANES * part + row];                                                  \
    b_part[part] = nj_b[at + LANES * part + column];
            NJ_EACH_PART(NJ_READ)
#define NJ_ADD(part, i, quad)                                                                      \
    NJ_SUM(part, i, quad) = fma(vec4(a_part[part][i]), b_part[quad], NJ_SUM(part, i, quad));
#define NJ_ADD_ROW(part, i) NJ_EACH_QUAD(NJ_ADD, part, i)
            NJ_EACH_ROW(NJ_ADD_ROW)
        }
        if (k0 + DEPTH < K)
            share_quads(1 - now, a_quad, b_quad);
        barrier();
    }
#define NJ_STORE(part, i, quad)                                                                    \
    store(m0 + 4 * (LANES * part + row) + i, n0 + 4 * (LANES * quad + column),                     \
          scale * NJ_SUM(part, i, quad));
#define NJ_STORE_ROW(part, i) NJ_EACH_QUAD(NJ_STORE, part, i)
    NJ_EACH_ROW(NJ_STORE_ROW)
}
