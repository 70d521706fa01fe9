/* SPDX-License-Identifier: Apache-2.0
 *
 * delta.h: what the references of the gated delta rule share. Rows, chunks and heads are those of base/delta.h.
 */
#ifndef NOJIT_REF_DELTA_H
#define NOJIT_REF_DELTA_H

#include "base/delta.h"
#include "sigmoid.h"

enum { CHUNK = DELTA_CHUNK, DELTA_D = 128 }; /* rows of a chunk, largest head size */

/* Return a factor, or logarithm, of row i of a chunk. */
static inline real factor(const real *rows, int which, int32_t i)
{
    return rows[which * CHUNK + i];
}

static inline int32_t chunks_of(int32_t S)
{
    return (S + CHUNK - 1) / CHUNK;
}

static inline int32_t chunk_rows(int32_t S, int32_t chunk)
{
    const int32_t left = S - chunk * CHUNK;
    return left < CHUNK ? left : CHUNK;
}

/* Return the number of a chunk of a head among all. */
static inline int64_t chunk_at(int32_t b, int32_t h, int32_t chunk, int32_t H, int32_t S)
{
    return ((int64_t)b * H + h) * chunks_of(S) + chunk;
}

/* Columns of value head h, and of its query and key head. */
struct delta_columns {
    int64_t q, k, v, row; /* row: elements of a row */
};

static inline struct delta_columns delta_columns(int D, int32_t H, int32_t K, int32_t h)
{
    const int64_t kv = h / (H / K);
    return (struct delta_columns){kv * D, (K + kv) * D, (2 * K + (int64_t)h) * D,
                                  (2 * K + (int64_t)H) * D};
}

static inline real dot(const real *x, const real *y, int n)
{
    real sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Add f x to y. */
static inline void add_scaled(real *y, real f, const real *x, int n)
{
    for (int i = 0; i < n; i++)
        y[i] += f * x[i];
}

static inline real softplus(real x)
{
    return (x > 0 ? x : 0) + log1p(exp(x > 0 ? -x : x));
}

/* Return the decay from the chunk's start to row i, and from row j to row i, of a document. */
static inline real decay_to(const real *logs, int32_t i)
{
    return exp(factor(logs, DELTA_LOG, i) + factor(logs, DELTA_LOG_REST, i));
}

static inline real decay_from(const real *logs, int32_t i, int32_t j)
{
    return exp((factor(logs, DELTA_LOG, i) - factor(logs, DELTA_LOG, j)) +
               (factor(logs, DELTA_LOG_REST, i) - factor(logs, DELTA_LOG_REST, j)));
}

/* Return the first row of the document of row i of a sequence. */
static inline int32_t start_of(const int32_t *doc_start, int32_t i)
{
    return doc_start ? doc_start[i] : 0;
}

#endif
