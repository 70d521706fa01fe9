/* SPDX-License-Identifier: Apache-2.0 */
#include "delta.h"

struct chunk {
    const real *q, *k; /* the chunk's first row */
    int64_t row;       /* elements from a row to the next */
    int32_t first, rows;
    int D;
};

static real norm_of(const real *x, int D)
{
    const real sum = dot(x, x, D);
    return 1 / sqrt(sum + (real)DELTA_EPS);
}

/* Compute the factors of a chunk from its logarithms and strengths. */
static void factors(real *gates, const real *logs, const struct chunk *c, const int32_t *doc_start)
{
    const int32_t first = c->first, last = c->rows - 1;
    const int32_t last_start = start_of(doc_start, last);
    const real root = sqrt((real)c->D);
    for (int32_t i = 0; i < c->rows; i++) {
        const real in = start_of(doc_start, i) < first ? decay_to(logs, i) : 0;
        const real out = first + i >= last_start ? decay_from(logs, last, i) : 0;
        const real k_norm = norm_of(c->k + i * c->row, c->D);
        const real q_norm = norm_of(c->q + i * c->row, c->D);
        gates[DELTA_K_IN * CHUNK + i] = in * k_norm;
        gates[DELTA_Q_IN * CHUNK + i] = in * q_norm / root;
        gates[DELTA_K_OUT * CHUNK + i] = out * k_norm;
        gates[DELTA_K_NORM * CHUNK + i] = k_norm;
        gates[DELTA_Q_NORM * CHUNK + i] = q_norm;
        gates[DELTA_CARRY * CHUNK + i] = last_start < first ? decay_to(logs, last) : 0;
    }
}

/* Compute the scores, and the inverse of I + A, column by column. */
static void matrices(real *solve, real *scores, const real *gates, const real *logs,
                     const struct chunk *c, const int32_t *doc_start)
{
    real system[CHUNK][CHUNK] = {{0}};
    const real root = sqrt((real)c->D);
    memset(solve, 0, sizeof system);
    memset(scores, 0, sizeof system);
    for (int32_t i = 0; i < c->rows; i++)
        for (int32_t j = 0; j <= i; j++) {
            if (c->first + j < start_of(doc_start, i))
                continue;
            const real decay = decay_from(logs, i, j);
            const real *k = c->k + j * c->row;
            const real by = decay * factor(gates, DELTA_K_NORM, j);
            system[i][j] = factor(gates, DELTA_BETA, i) * by * factor(gates, DELTA_K_NORM, i) *
                           dot(c->k + i * c->row, k, c->D);
            scores[i * CHUNK + j] =
                by * factor(gates, DELTA_Q_NORM, i) * dot(c->q + i * c->row, k, c->D) / root;
        }
    for (int32_t column = 0; column < c->rows; column++)
        for (int32_t i = column; i < c->rows; i++) {
            real x = i == column;
            for (int32_t j = column; j < i; j++)
                x -= system[i][j] * solve[j * CHUNK + column];
            solve[i * CHUNK + column] = x;
        }
}

void NJ_REF(delta_solve)(int D, real *gates, real *logs, real *solve, real *scores, const real *qkv,
                         const real *b, const real *a, const real *a_log, const real *dt_bias,
                         const int32_t *doc_start, int32_t B, int32_t S, int32_t H, int32_t K,
                         int32_t ld)
{
    const int32_t chunks = chunks_of(S);
#pragma omp parallel for collapse(3)
    for (int32_t n = 0; n < B; n++)
        for (int32_t h = 0; h < H; h++)
            for (int32_t chunk = 0; chunk < chunks; chunk++) {
                const struct delta_columns at = delta_columns(D, H, K, h);
                const int64_t seq = (int64_t)n * S, to = chunk_at(n, h, chunk, H, S);
                const int32_t first = chunk * CHUNK, rows = chunk_rows(S, chunk);
                const int32_t *starts = doc_start ? doc_start + seq + first : NULL;
                const real *row = qkv + (seq + first) * at.row;
                const struct chunk c = {row + at.q, row + at.k, at.row, first, rows, D};
                real *f = gates + to * DELTA_FACTORS * CHUNK;
                real *l = logs + to * DELTA_LOGS * CHUNK;
                memset(f, 0, DELTA_FACTORS * CHUNK * sizeof *f);
                memset(l, 0, DELTA_LOGS * CHUNK * sizeof *l);
                double sum = 0;
                for (int32_t i = 0; i < rows; i++) {
                    const int64_t column = (seq + first + i) * ld + h;
                    sum = start_of(starts, i) == first + i ? 0 : sum;
                    sum -= exp(a_log[h]) * softplus(a[column] + dt_bias[h]);
                    const real rounded = (real)sum;
                    l[DELTA_LOG * CHUNK + i] = rounded;
                    l[DELTA_LOG_REST * CHUNK + i] = (real)(sum - (double)rounded);
                    f[DELTA_BETA * CHUNK + i] = sigmoid(b[column]);
                }
                factors(f, l, &c, starts);
                matrices(solve + to * CHUNK * CHUNK, scores + to * CHUNK * CHUNK, f, l, &c, starts);
            }
}
