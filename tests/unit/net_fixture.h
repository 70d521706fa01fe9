/* SPDX-License-Identifier: Apache-2.0
 *
 * net_fixture.h: a small net with random weights, its forward and backward pass over two documents, and a decoder. Its
 * gradients are compared with difference quotients.
 */
#ifndef NOJIT_TESTS_NET_FIXTURE_H
#define NOJIT_TESTS_NET_FIXTURE_H

#include "base/checked.h"
#include "model/config.h"
#include "net/backward.h"
#include "net/decoder.h"
#include "net/forward.h"
#include "net/tables.h"
#include "unit.h"

#include <math.h>

/* The second document begins at row SECOND; all but three of its tokens are a prompt. */
enum { ROWS = 24, SECOND = 10, PROMPT = ROWS - 3 - SECOND, VOCABULARY = 40, NET_HIDDEN = 72 };

struct model {
    nj_context *ctx;
    nj_stream *stream;
    struct net n;
    struct rows rows;
    struct acts a;
    struct decoder d;
    char *memory[4];
    float slope[ROWS * NET_HIDDEN]; /* gradient of the loss by the normed rows */
};

static inline void *zeros(struct model *m, int i, size_t bytes)
{
    m->memory[i] = aligned_alloc(CARVE_ALIGN, size_up(bytes, CARVE_ALIGN));
    assert_non_null(m->memory[i]);
    return memset(m->memory[i], 0, bytes);
}

static inline float random_number(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(int32_t)*seed * 0x1p-31f;
}

/* Two documents; each id occurs more than once. */
static inline void fill_rows(const struct rows *rows)
{
    enum { IDS = 11 };
    int at = 0, run = 0;
    for (int i = 0; i < ROWS; i++) {
        rows->ids[i] = i * 7 % IDS;
        rows->doc_start[i] = i < SECOND ? 0 : SECOND;
        rows->pos[i] = i - rows->doc_start[i];
    }
    for (; run < IDS; run++) {
        rows->runs[run] = at;
        for (int i = 0; i < ROWS; i++)
            if (rows->ids[i] == run)
                rows->order[at++] = i;
    }
    for (; run <= ROWS; run++)
        rows->runs[run] = at;
}

static inline void prepare(struct model *m)
{
    struct work r = {.ctx = m->ctx, .s = m->stream, .prepare = true};
    net_forward(&r, &m->n, &m->a, &m->rows);
    net_backward(&r, &m->n, &m->a, &m->rows);
    decoder_prefill(&r, &m->d, PROMPT);
    decoder_logits(&r, &m->d, 1, 1);
    check_ok(r.rc, "GEMMs");
}

static inline void open_model(struct model *m, const struct model_config *c,
                              enum recompute recompute)
{
    const struct nj_options options = {.device = NJ_DEVICE_CPU};
    struct carve counted = {0}, arena;
    uint32_t seed = 5;
    *m = (struct model){.n = {.c = *c, .T = NJ_F32, .recompute = recompute}};
    struct net *n = &m->n;
    check_ok(nj_context_create(&m->ctx, &options), "context");
    check_ok(nj_stream_create(m->ctx, &m->stream), "stream");
    check_ok(net_place(n, PARAMS_ALL), "net");
    n->trained = &n->p;
    float *w = zeros(m, 0, (size_t)n->p.count * sizeof *w);
    net_connect(n, (char *)w, zeros(m, 1, (size_t)n->p.count * sizeof *w));
    for (size_t i = 0; i < n->p.specs; i++)
        for (int64_t k = 0; k < tensor_elements(&n->p.spec[i]); k++)
            w[n->p.first[i] + k] = n->p.spec[i].rank == 2 ? 0.2f * random_number(&seed)
                                                          : 1 + 0.3f * random_number(&seed);
    n->inv_freq = zeros(m, 2, tables_bytes(&n->c));
    tables_fill(&n->c, n->c.max_positions, n->inv_freq);
    const struct decoder_size size = {.rows = 2, .positions = ROWS};
    acts_carve(n, 1, ROWS, ACTS_TRAIN, &counted, &m->a);
    rows_carve(ROWS, ROWS, USE_FORWARD | USE_STEP, &counted, &m->rows);
    decoder_carve(n, &size, VOCABULARY, VOCABULARY, &counted, &m->d);
    arena = (struct carve){.base = zeros(m, 3, counted.used)};
    acts_carve(n, 1, ROWS, ACTS_TRAIN, &arena, &m->a);
    rows_carve(ROWS, ROWS, USE_FORWARD | USE_STEP, &arena, &m->rows);
    decoder_carve(n, &size, VOCABULARY, VOCABULARY, &arena, &m->d);
    assert_int_equal(arena.used, counted.used);
    fill_rows(&m->rows);
    for (size_t i = 0; i < sizeof m->slope / sizeof *m->slope; i++)
        m->slope[i] = random_number(&seed);
    prepare(m);
}

static inline void close_model(struct model *m)
{
    net_free(&m->n);
    nj_stream_destroy(m->stream);
    nj_context_destroy(m->ctx);
    for (int i = 0; i < 4; i++)
        free(m->memory[i]);
}

static inline double loss(struct model *m)
{
    struct work r = {.ctx = m->ctx, .s = m->stream};
    const float *y = (const float *)(const void *)m->a.y;
    double sum = 0;
    net_forward(&r, &m->n, &m->a, &m->rows);
    check_ok(r.rc, "forward");
    for (size_t i = 0; i < sizeof m->slope / sizeof *m->slope; i++)
        sum += (double)y[i] * (double)m->slope[i];
    return sum;
}

static inline void backward(struct model *m)
{
    struct work r = {.ctx = m->ctx, .s = m->stream};
    loss(m);
    memcpy(m->a.branch, m->slope, sizeof m->slope);
    net_backward(&r, &m->n, &m->a, &m->rows);
    check_ok(r.rc, "backward");
}

/* Compare the largest gradient of each tensor but the head, which the loss does not read, with a difference quotient
 * over that step. */
static inline void check_derivatives(struct model *m, double (*loss_of)(struct model *m),
                                     float step)
{
    backward(m);
    float *w = (float *)(void *)m->n.w;
    for (size_t i = 0; i < m->n.p.specs; i++) {
        int64_t at = m->n.p.first[i];
        if (m->n.p.spec[i].role == ROLE_HEAD)
            continue;
        for (int64_t k = 0; k < tensor_elements(&m->n.p.spec[i]); k++)
            if (fabsf(m->n.grad[m->n.p.first[i] + k]) > fabsf(m->n.grad[at]))
                at = m->n.p.first[i] + k;
        const float before = w[at];
        double slope[2];
        for (int k = 0; k < 2; k++) {
            volatile float up = before + step * (float)(k + 1);
            volatile float down = before - step * (float)(k + 1);
            w[at] = up;
            const double above = loss_of(m);
            w[at] = down;
            slope[k] = (above - loss_of(m)) / ((double)up - (double)down);
        }
        w[at] = before;
        const double want = (4 * slope[0] - slope[1]) / 3, got = (double)m->n.grad[at];
        if (!(fabs(got - want) <= 0.01 * fabs(want)) || !(fabs(want) > 0.05))
            fail_msg("%s: gradient %.7g, difference quotient %.7g", m->n.p.spec[i].name, got, want);
    }
}

/* Compare the bits of all gradients with those of nets that recompute more. */
static inline void check_recomputed(const struct model_config *c)
{
    struct model all, fewer;
    open_model(&all, c, RECOMPUTE_NONE);
    backward(&all);
    for (int k = RECOMPUTE_MLP; k <= RECOMPUTE_BLOCK; k++) {
        open_model(&fewer, c, (enum recompute)k);
        backward(&fewer);
        assert_memory_equal(fewer.n.grad, all.n.grad, (size_t)all.n.p.count * sizeof(float));
        close_model(&fewer);
    }
    close_model(&all);
}

/* Put the prompt of the second document into the second slot. */
static inline void prefill(struct model *m)
{
    struct work r = {.ctx = m->ctx, .s = m->stream};
    for (int i = 0; i < PROMPT; i++) {
        m->d.prompts.ids[i] = m->rows.ids[SECOND + i];
        m->d.prompts.pos[i] = i;
        m->d.prompts.slot[i] = 1;
        m->d.prompts.doc_start[i] = 0;
    }
    decoder_prefill(&r, &m->d, PROMPT);
    check_ok(r.rc, "prompt");
}

/* Return the logits of the next row of the second document, from a decoder's step. */
static inline const float *step_row(struct model *m, int row)
{
    struct work r = {.ctx = m->ctx, .s = m->stream};
    m->d.now.id[0] = m->rows.ids[row];
    m->d.now.pos[0] = row - SECOND;
    m->d.now.slot[0] = 1;
    decoder_logits(&r, &m->d, 1, 1);
    check_ok(r.rc, "step");
    return (const float *)(const void *)m->d.logits;
}

#endif
