/* SPDX-License-Identifier: Apache-2.0 */
#include "delta.h"

/* A chunk of a value head. */
struct chunk {
    const real *q, *k, *dout, *u, *dr; /* the first row */
    int64_t row, width;                /* elements from a row of q, k to the next; of the others */
    int32_t first, rows;
    int D;
    const real *f, *l;          /* factors, logarithms */
    const real *state, *dstate; /* before the chunk; the gradient behind it */
    const int32_t *starts;      /* first row of the document of each row; NULL: 0 */
};

/* Gradients of the normalised queries and keys of a chunk, the latter in two parts, and sums for those of steps. */
struct sums {
    real q[CHUNK][DELTA_D], left[CHUNK][DELTA_D], right[CHUNK][DELTA_D];
    real pairs[CHUNK]; /* gradient of the decay into each row by the pairs of rows across it */
    real in[CHUNK];    /* each row's query and key with their gradients by the state before */
    real out[CHUNK];   /* its key with its gradient by the state behind the chunk */
    real states;       /* both states' product, times the decay between them */
};

/* Add what a pair of rows gives to the gradients of the decays between them. */
static void add_across(struct sums *s, int32_t j, int32_t i, real x)
{
    for (int32_t n = j + 1; n <= i; n++)
        s->pairs[n] += x;
}

/* Add to y[d] f times the sum over c of x[c] state[c][d]. */
static void add_state(real *y, real f, const real *x, const real *state, int D)
{
    for (int c = 0; c < D; c++)
        add_scaled(y, f * x[c], state + (int64_t)c * D, D);
}

/* Add what the rows of a chunk give each other. */
static void within(struct sums *s, const struct chunk *c)
{
    const real root = sqrt((real)c->D);
    for (int32_t i = 0; i < c->rows; i++)
        for (int32_t j = 0; j <= i; j++) {
            if (c->first + j < start_of(c->starts, i))
                continue;
            const real decay = decay_from(c->l, i, j);
            const real *q = c->q + i * c->row, *k = c->k + i * c->row, *from = c->k + j * c->row;
            const real by = factor(c->f, DELTA_K_NORM, j),
                       of_q = factor(c->f, DELTA_Q_NORM, i) / root;
            const real dp = decay * dot(c->dout + i * c->width, c->u + j * c->width, c->D);
            add_scaled(s->q[i], dp * by, from, c->D);
            add_scaled(s->right[j], dp * of_q, q, c->D);
            add_across(s, j, i, dp * by * of_q * dot(q, from, c->D));
            if (j == i)
                continue;
            const real dm = -factor(c->f, DELTA_BETA, i) * decay *
                            dot(c->dr + i * c->width, c->u + j * c->width, c->D);
            add_scaled(s->left[i], dm * by, from, c->D);
            add_scaled(s->right[j], dm * factor(c->f, DELTA_K_NORM, i), k, c->D);
            add_across(s, j, i, dm * by * factor(c->f, DELTA_K_NORM, i) * dot(k, from, c->D));
        }
}

/* Add what goes through the states before and behind the chunk. */
static void through_states(struct sums *s, const struct chunk *c)
{
    const int32_t last_start = start_of(c->starts, c->rows - 1);
    const real root = sqrt((real)c->D);
    s->states = factor(c->f, DELTA_CARRY, 0) * dot(c->state, c->dstate, c->D * c->D);
    for (int32_t i = 0; i < c->rows; i++) {
        const real *q = c->q + i * c->row, *k = c->k + i * c->row;
        const real k_norm = factor(c->f, DELTA_K_NORM, i), q_norm = factor(c->f, DELTA_Q_NORM, i);
        const real in = start_of(c->starts, i) < c->first ? decay_to(c->l, i) : 0;
        real of_q[DELTA_D] = {0}, of_k[DELTA_D] = {0}, out[DELTA_D] = {0};
        add_state(of_q, in, c->dout + i * c->width, c->state, c->D);
        add_state(of_k, -factor(c->f, DELTA_BETA, i) * in, c->dr + i * c->width, c->state, c->D);
        if (c->first + i >= last_start)
            add_state(out, decay_from(c->l, c->rows - 1, i), c->u + i * c->width, c->dstate, c->D);
        add_scaled(s->q[i], 1, of_q, c->D);
        add_scaled(s->left[i], 1, of_k, c->D);
        add_scaled(s->right[i], 1, out, c->D);
        s->in[i] = q_norm / root * dot(q, of_q, c->D) + k_norm * dot(k, of_k, c->D);
        s->out[i] = k_norm * dot(k, out, c->D);
    }
}

/* Return the gradient of the logarithm of the decay into row n, which stands in pairs of rows across it, in what the
 * rows from n on have of the state before the chunk, in what those before n give to the state behind it, and between
 * both states. */
static real decay_gradient(const struct sums *s, const struct chunk *c, int32_t n)
{
    real dg = s->states + s->pairs[n];
    for (int32_t i = n; i < c->rows; i++)
        dg += s->in[i];
    for (int32_t j = 0; j < n; j++)
        dg += s->out[j];
    return dg;
}

/* Add the gradient of x to dx, from that of x times `norm`, its reciprocal length, which dhat times `by` is. */
static void through_norm(real *dx, const real *dhat, const real *x, real norm, real by, int D)
{
    const real along = norm * norm * dot(dhat, x, D);
    for (int d = 0; d < D; d++)
        dx[d] += by * norm * (dhat[d] - along * x[d]);
}

/* Strengths and steps of the rows of a chunk, and their gradients. */
struct inputs {
    const real *b, *a;
    real *db, *da;
    int32_t ld;
    real rate, dt_bias; /* exp(a_log) and dt_bias of the head */
};

/* Compute the gradients of strengths and steps, and what the chunk gives to those of a_log and dt_bias. */
static void step_gradients(real *da_log, real *ddt_bias, const struct inputs *in,
                           const struct sums *s, const struct chunk *c)
{
    *da_log = *ddt_bias = 0;
    for (int32_t i = 0; i < c->rows; i++) {
        const real beta = factor(c->f, DELTA_BETA, i), dg = decay_gradient(s, c, i);
        const real step = in->a[(int64_t)i * in->ld] + in->dt_bias;
        const real of_step = -in->rate * dg * sigmoid(step);
        in->da[(int64_t)i * in->ld] = of_step;
        *ddt_bias += of_step;
        *da_log -= dg * in->rate * softplus(step);
        in->db[(int64_t)i * in->ld] =
            (1 - beta) * dot(c->dr + i * c->width, c->u + i * c->width, c->D);
    }
}

/* Compute the gradients that a value head gives; those of queries and keys are added to what is there, unless it is the
 * first of its key head. */
static void head_gradients(const struct chunk *c, real *dqkv, const struct delta_columns *at,
                           int first, const struct inputs *in, real *da_log, real *ddt_bias)
{
    struct sums s;
    const real root = sqrt((real)c->D);
    memset(&s, 0, sizeof s);
    within(&s, c);
    through_states(&s, c);
    for (int32_t i = 0; i < c->rows; i++) {
        real *to = dqkv + i * c->row, dk[DELTA_D];
        const real *q = c->q + i * c->row, *k = c->k + i * c->row;
        const real k_norm = factor(c->f, DELTA_K_NORM, i), q_norm = factor(c->f, DELTA_Q_NORM, i);
        for (int d = 0; d < c->D; d++) {
            dk[d] = s.left[i][d] + s.right[i][d];
            to[at->v + d] = factor(c->f, DELTA_BETA, i) * c->dr[i * c->width + d];
            if (first)
                to[at->q + d] = to[at->k + d] = 0;
        }
        through_norm(to + at->q, s.q[i], q, q_norm, 1 / root, c->D);
        through_norm(to + at->k, dk, k, k_norm, 1, c->D);
    }
    step_gradients(da_log, ddt_bias, in, &s, c);
}

void NJ_REF(delta_bwd)(int D, real *dqkv, real *db, real *da, real *da_log_part,
                       real *ddt_bias_part, const real *dout, const real *qkv, const real *updates,
                       const real *states, const real *dr, const real *dstates, const real *gates,
                       const real *logs, const real *b, const real *a, const real *a_log,
                       const real *dt_bias, const int32_t *doc_start, int32_t B, int32_t S,
                       int32_t H, int32_t K, int32_t ld)
{
    const int64_t size = (int64_t)D * D, width = (int64_t)H * D;
    const int32_t group = H / K;
#pragma omp parallel for collapse(3)
    for (int32_t n = 0; n < B; n++)
        for (int32_t kv = 0; kv < K; kv++)
            for (int32_t chunk = 0; chunk < chunks_of(S); chunk++) {
                const int64_t first = (int64_t)n * S + chunk * CHUNK;
                const int32_t rows = chunk_rows(S, chunk);
                for (int32_t h = kv * group; h < (kv + 1) * group; h++) {
                    const struct delta_columns at = delta_columns(D, H, K, h);
                    const int64_t of = chunk_at(n, h, chunk, H, S), column = first * width + h * D;
                    const real *row = qkv + first * at.row;
                    const struct chunk c = {
                        row + at.q,
                        row + at.k,
                        dout + column,
                        updates + column,
                        dr + column,
                        at.row,
                        width,
                        chunk * CHUNK,
                        rows,
                        D,
                        gates + of * DELTA_FACTORS * CHUNK,
                        logs + of * DELTA_LOGS * CHUNK,
                        states + of * size,
                        dstates + of * size,
                        doc_start ? doc_start + first : NULL,
                    };
                    head_gradients(&c, dqkv + first * at.row, &at, h == kv * group,
                                   &(struct inputs){b + first * ld + h, a + first * ld + h,
                                                    db + first * ld + h, da + first * ld + h, ld,
                                                    exp(a_log[h]), dt_bias[h]},
                                   da_log_part + ((int64_t)n * chunks_of(S) + chunk) * H + h,
                                   ddt_bias_part + ((int64_t)n * chunks_of(S) + chunk) * H + h);
                }
            }
}
