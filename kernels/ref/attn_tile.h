/* SPDX-License-Identifier: Apache-2.0
 *
 * attn_tile.h: functions that the references of attention share. Scores exist as one tile of TILE_Q rows by at most
 * TILE_K keys, on the stack of the thread; nothing of size S x S does. A tile's products are small enough that
 * OpenBLAS, in any of its threading builds, runs them on the calling thread: rows * keys * D <= 262,144.
 */
#ifndef NOJIT_ATTN_TILE_H
#define NOJIT_ATTN_TILE_H

#include <cblas.h>

#include "ref.h"

#ifdef NJ_REAL_DOUBLE
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif

enum { TILE_Q = 32, TILE_K = 64 };

/* Return the keys of a tile, at most TILE_K. */
static inline int tile_keys(int D)
{
    return D > 128 ? TILE_K / 2 : TILE_K;
}

static inline int32_t min_i32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static inline int32_t max_i32(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* Compute row-major C[m,n] = alpha op(A) op(B) + beta C, as in NJ_GEMM_NT, _NN, _TN. */
static inline void tile_nt(int m, int n, int k, real alpha, const real *a, int lda, const real *b,
                           int ldb, real beta, real *c, int ldc)
{
    GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static inline void tile_nn(int m, int n, int k, real alpha, const real *a, int lda, const real *b,
                           int ldb, real beta, real *c, int ldc)
{
    GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

static inline void tile_tn(int m, int n, int k, real alpha, const real *a, int lda, const real *b,
                           int ldb, real beta, real *c, int ldc)
{
    GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* One head in the fused array, whose rows have ld elements. */
struct attn_head {
    const real *q, *k, *v;
    int ld, D;
    real scale;
    const int32_t *doc_start; /* document starts of this sequence, or NULL */
    int32_t window;           /* maximum number of keys that a row sees; 0: no limit */
};

/* Return the first key that row i sees. */
static inline int32_t first_seen(const struct attn_head *a, int32_t i)
{
    const int32_t start = a->doc_start ? a->doc_start[i] : 0;
    return a->window > 0 ? max_i32(start, i - a->window + 1) : start;
}

/* Return whether row i sees key j. */
static inline int visible(const struct attn_head *a, int32_t i, int32_t j)
{
    return j <= i && j >= first_seen(a, i);
}

/* Return the first key tile that some row of i0.. i0+rows-1 sees. */
static inline int32_t first_key(const struct attn_head *a, int32_t i0, int32_t rows)
{
    int32_t first = i0;
    for (int32_t i = i0; i < i0 + rows; i++)
        first = min_i32(first, first_seen(a, i));
    return first / TILE_K * TILE_K;
}

/* Return head h of H, grouped over K, of the sequence whose rows start at qkv. */
static inline struct attn_head attn_head_of(const real *qkv, const int32_t *doc_start, int h, int H,
                                            int K, int D, int32_t window, float scale)
{
    const int kv = h / (H / K);
    return (struct attn_head){.q = qkv + (int64_t)h * D,
                              .k = qkv + (int64_t)(H + kv) * D,
                              .v = qkv + (int64_t)(H + K + kv) * D,
                              .ld = (H + 2 * K) * D,
                              .D = D,
                              .scale = (real)scale,
                              .doc_start = doc_start,
                              .window = window};
}

/* Set s[rows, keys] = scale q k^T for rows from i0 and keys from j0, with row stride TILE_K. Nothing is masked yet. */
static inline void tile_scores(const struct attn_head *a, int32_t i0, int rows, int32_t j0,
                               int keys, real *s)
{
    tile_nt(rows, keys, a->D, a->scale, a->q + (int64_t)i0 * a->ld, a->ld,
            a->k + (int64_t)j0 * a->ld, a->ld, 0, s, TILE_K);
}

/* Compute the rows from i0 on of one head: o (stride ldo) and, unless NULL, lse[rows], by online softmax over key
 * tiles. */
static inline void attn_rows(const struct attn_head *a, int32_t i0, int rows, real *o, int ldo,
                             real *lse)
{
    real s[TILE_Q * TILE_K], max[TILE_Q], sum[TILE_Q];
    for (int r = 0; r < rows; r++) {
        max[r] = -(real)INFINITY;
        sum[r] = 0;
        for (int d = 0; d < a->D; d++)
            o[(int64_t)r * ldo + d] = 0;
    }
    const int step = tile_keys(a->D);
    for (int32_t j0 = first_key(a, i0, rows); j0 < i0 + rows; j0 += step) {
        const int keys = min_i32(step, i0 + rows - j0);
        tile_scores(a, i0, rows, j0, keys, s);
        for (int r = 0; r < rows; r++) {
            real *row = s + r * TILE_K;
            real top = max[r];
            for (int j = 0; j < keys; j++) {
                if (!visible(a, i0 + r, j0 + j))
                    row[j] = -(real)INFINITY;
                else if (!(row[j] <= top)) /* true for NaN, too */
                    top = row[j];
            }
            const real base = top == -(real)INFINITY ? 0 : top; /* the row sees no key yet */
            const real keep = exp(max[r] - base);
            max[r] = top;
            sum[r] *= keep;
            for (int j = 0; j < keys; j++) {
                row[j] = exp(row[j] - base);
                sum[r] += row[j];
            }
            for (int d = 0; d < a->D; d++)
                o[(int64_t)r * ldo + d] *= keep;
        }
        tile_nn(rows, a->D, keys, 1, s, TILE_K, a->v + (int64_t)j0 * a->ld, a->ld, 1, o, ldo);
    }
    for (int r = 0; r < rows; r++) {
        for (int d = 0; d < a->D; d++)
            o[(int64_t)r * ldo + d] /= sum[r];
        if (lse)
            lse[r] = max[r] + log(sum[r]);
    }
}

/* Compute, for the backward pass, p[rows, keys] = exp(s - lse), 0 where masked, and ds = p (dout v^T - delta). */
static inline void tile_probabilities(const struct attn_head *a, int32_t i0, int rows, int32_t j0,
                                      int keys, const real *dout, int ldo, const real *lse,
                                      const real *delta, real *p, real *ds)
{
    tile_scores(a, i0, rows, j0, keys, p);
    tile_nt(rows, keys, a->D, 1, dout, ldo, a->v + (int64_t)j0 * a->ld, a->ld, 0, ds, TILE_K);
    for (int r = 0; r < rows; r++) {
        real *prow = p + r * TILE_K, *drow = ds + r * TILE_K;
        for (int j = 0; j < keys; j++) {
            const int seen = visible(a, i0 + r, j0 + j);
            prow[j] = seen ? exp(prow[j] - lse[r]) : 0;
            drow[j] = seen ? prow[j] * (drow[j] - delta[r]) : 0;
        }
    }
}

#endif
