/* SPDX-License-Identifier: Apache-2.0 */
#include "delta.h"

/* The rows of a chunk for a head, and their updates. */
struct rows {
    const real *q, *k, *v; /* the first row */
    int64_t row;           /* elements from a row to the next */
    int32_t count;
    int D;
    const real *f, *l; /* factors, logarithms */
};

/* Compute the updates u of a chunk from the state before it. */
static void updates_of(real (*u)[DELTA_D], const struct rows *c, const real *state,
                       const real *solve)
{
    real r[CHUNK][DELTA_D];
    const real *f = c->f;
    for (int32_t i = 0; i < c->count; i++) {
        const real *k = c->k + i * c->row, *v = c->v + i * c->row;
        for (int d = 0; d < c->D; d++) {
            const real sum = dot(state + (int64_t)d * c->D, k, c->D);
            r[i][d] = factor(f, DELTA_BETA, i) * (v[d] - factor(f, DELTA_K_IN, i) * sum);
        }
    }
    for (int32_t i = 0; i < c->count; i++) {
        memset(u[i], 0, (size_t)c->D * sizeof *u[i]);
        for (int32_t j = 0; j < c->count; j++)
            add_scaled(u[i], solve[i * CHUNK + j], r[j], c->D);
    }
}

/* Add the outer product of an update and a key to a state. */
static void add_update(real *state, real by, const real *u, const real *k, int D)
{
    for (int c = 0; c < D; c++)
        add_scaled(state + (int64_t)c * D, by * u[c], k, D);
}

/* Compute the state behind row e, whose document begins at row `begin`; this is before the chunk if negative. */
static void state_behind(real *out, const real *state, const struct rows *c, real (*u)[DELTA_D],
                         int32_t e, int32_t begin)
{
    const real *l = c->l;
    const real keep = begin < 0 ? decay_to(l, e) : 0;
    for (int64_t i = 0; i < (int64_t)c->D * c->D; i++)
        out[i] = begin < 0 ? keep * state[i] : 0;
    for (int32_t j = begin < 0 ? 0 : begin; j <= e; j++) {
        const real decay = decay_from(l, e, j);
        add_update(out, decay * factor(c->f, DELTA_K_NORM, j), u[j], c->k + j * c->row, c->D);
    }
}

/* Replace the state by that behind the chunk. */
static void advance(real *state, const struct rows *c, real (*u)[DELTA_D])
{
    const real keep = factor(c->f, DELTA_CARRY, 0);
    for (int64_t i = 0; i < (int64_t)c->D * c->D; i++)
        state[i] *= keep;
    for (int32_t j = 0; j < c->count; j++)
        add_update(state, factor(c->f, DELTA_K_OUT, j), u[j], c->k + j * c->row, c->D);
}

void NJ_REF(delta_fwd)(int D, real *o, real *states, real *updates, real *state, const real *qkv,
                       const real *gates, const real *logs, const real *solve, const real *scores,
                       const int32_t *doc_start, const int32_t *slot, int32_t B, int32_t S,
                       int32_t H, int32_t K, int32_t G)
{
    const int64_t size = (int64_t)D * D;
    (void)G;
#pragma omp parallel for collapse(2)
    for (int32_t b = 0; b < B; b++)
        for (int32_t h = 0; h < H; h++) {
            const struct delta_columns at = delta_columns(D, H, K, h);
            real now[DELTA_D * DELTA_D] = {0}, u[CHUNK][DELTA_D];
            for (int32_t chunk = 0; chunk < chunks_of(S); chunk++) {
                const int64_t n = chunk_at(b, h, chunk, H, S);
                const int64_t first = (int64_t)b * S + chunk * CHUNK;
                const real *row = qkv + first * at.row;
                const struct rows c = {row + at.q,
                                       row + at.k,
                                       row + at.v,
                                       at.row,
                                       chunk_rows(S, chunk),
                                       D,
                                       gates + n * DELTA_FACTORS * CHUNK,
                                       logs + n * DELTA_LOGS * CHUNK};
                if (states)
                    memcpy(states + n * size, now, (size_t)size * sizeof *now);
                updates_of(u, &c, now, solve + n * CHUNK * CHUNK);
                for (int32_t i = 0; i < c.count; i++) {
                    const int64_t out = ((first + i) * H + h) * D;
                    const real *p = scores + (n * CHUNK + i) * CHUNK, *q = c.q + i * c.row;
                    for (int d = 0; d < D; d++)
                        o[out + d] = factor(c.f, DELTA_Q_IN, i) * dot(now + (int64_t)d * D, q, D);
                    for (int32_t j = 0; j < c.count; j++)
                        add_scaled(o + out, p[j], u[j], D);
                    if (updates)
                        memcpy(updates + out, u[i], (size_t)D * sizeof *u[i]);
                    const int32_t s = chunk * CHUNK + i;
                    const int32_t *starts = doc_start ? doc_start + (int64_t)b * S : NULL;
                    if (!state || slot[first + i] < 0 ||
                        (s + 1 < S && start_of(starts, s + 1) == start_of(starts, s)))
                        continue;
                    state_behind(state + ((int64_t)slot[first + i] * H + h) * size, now, &c, u, i,
                                 start_of(starts, s) - chunk * CHUNK);
                }
                advance(now, &c, u);
            }
        }
}
