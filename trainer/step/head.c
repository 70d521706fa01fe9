/* SPDX-License-Identifier: Apache-2.0
 *
 * head.c: logits, objective and its gradient, in chunks of rows that have a target. Two buffers of logits are reused;
 * the student's, which may lie in gradients that are still idle (plan_layout.c), become their gradient in place
 * (docs/objective.md). The gradient of an FP8 student's is E5M2, in half the bytes.
 */
#include "step/head.h"

#include "net/logits.h"
#include "nojit_ops.h"
#include "objective/objective.h"

/* Return where the gradient of the logits lies as E5M2: at the end of their rows. */
static char *rows_e5m2(const struct engine *e)
{
    return e->mem.logits + (dtype_bytes(e->student.T) - 1) * (size_t)e->shape.ld;
}

static int ld_e5m2(const struct engine *e)
{
    return (int)dtype_bytes(e->student.T) * e->shape.ld;
}

/* Return the chunk that begins with row `first`, without a teacher. */
static struct objective_rows chunk_rows(const struct engine *e, int first)
{
    const struct memory *m = &e->mem;
    return (struct objective_rows){
        .T = e->student.T,
        .count = e->shape.chunk,
        .vocab = e->shape.vocab,
        .ld = e->shape.ld,
        .logits = m->logits,
        .target = m->rows.target + first,
        .state = m->state,
        .kd = m->kd,
        .ce = m->ce,
        .entropy = m->entropy,
        .agree = m->agree,
        .terms = train_terms(&e->o),
        .cap = e->student.c.logit_cap,
    };
}

/* Add up the measurements other than the loss, while the logits are there. */
static void measure_chunk(struct work *r, struct engine *e, struct objective_rows rows, int first,
                          bool train)
{
    struct losses *sums = e->mem.sums;
    if (e->mem.token_kd && e->o.acceptance) {
        objective_distances(r, &rows);
        objective_add(r, &sums->distance, &rows);
    }
    if (train && (e->shape.arrays & USE_ANSWERS)) {
        rows.target = e->mem.rows.answer + first;
        objective_answers(r, &rows);
        objective_add(r, &sums->answers, &rows);
    }
}

/* Compute the losses of a chunk. Return the teacher's logits; NULL: there is no teacher. */
static void *chunk_losses(struct work *r, struct engine *e, int first, bool train)
{
    struct memory *m = &e->mem;
    struct objective_rows rows = chunk_rows(e, first);
    rows.teacher = teacher_logits(r, &e->teacher, first);
    measure_chunk(r, e, rows, first, train);
    if (train && m->fp8_head.gradients) {
        rows.e5m2.at = rows_e5m2(e);
        rows.e5m2.scale = m->fp8_head.dy_scale;
        rows.e5m2.key = m->rows.key;
        rows.e5m2.ld = ld_e5m2(e);
        rows.e5m2.first = first;
    }
    objectives[e->o.objective].losses(r, &rows);
    objective_add(r, &m->sums->objective, &rows);
    return rows.teacher;
}

/* Copy the divergences of a chunk's tokens and the teacher's own cross-entropies to the host. The teacher's logits,
 * which are not needed any more, are lost. */
static void compare_chunk(struct work *r, struct engine *e, int first, void *teacher)
{
    struct memory *m = &e->mem;
    const size_t bytes = (size_t)e->shape.chunk * sizeof(float);
    struct objective_rows rows = chunk_rows(e, first);
    OP(r, nj_copy(r->s, m->token_kd + first, m->kd, bytes));
    rows.logits = teacher;
    objectives[OBJECTIVE_CE].losses(r, &rows);
    OP(r, nj_copy(r->s, m->token_ce + first, m->ce, bytes));
}

void head_gather(struct work *r, struct engine *e, int chunks)
{
    const struct shape *s = &e->shape;
    if (chunks == 0)
        return;
    OP(r, nj_row_gather(r->s, e->student.T,
                        &(struct nj_row_gather){.dst = e->mem.hidden,
                                                .src = e->mem.student.y,
                                                .index = e->mem.rows.valid,
                                                .M = chunks * s->chunk,
                                                .R = s->rows,
                                                .C = e->student.c.hidden_size,
                                                .scale = 1}));
    if (student_fp8_head_on(&e->student, &e->mem.student))
        student_fp8_head_weight(r, &e->student, &e->mem.fp8_head); /* may lie in y */
}

char *head_logits(struct work *r, struct engine *e, int first)
{
    const struct net *n = &e->student;
    const struct shape *s = &e->shape;
    char *x = e->mem.hidden + (size_t)first * (size_t)n->c.hidden_size * dtype_bytes(n->T);
    if (student_fp8_head_on(n, &e->mem.student)) {
        student_fp8_head_logits(r, n, &e->mem.fp8_head, e->mem.logits, x);
        net_cap_logits(r, n, s->chunk, s->vocab, s->ld, e->mem.logits);
    } else {
        net_logits(r, n, NULL, x, s->chunk, s->vocab, s->ld, e->mem.logits);
    }
    return x;
}

void head_scores(struct work *r, struct engine *e, int chunks, float *ce)
{
    const struct shape *s = &e->shape;
    struct memory *m = &e->mem;

    head_gather(r, e, chunks);
    for (int chunk = 0; chunk < chunks; chunk++) {
        const int first = chunk * s->chunk;
        head_logits(r, e, first);
        const struct objective_rows rows = chunk_rows(e, first);
        objectives[OBJECTIVE_CE].losses(r, &rows);
        OP(r, nj_copy(r->s, ce + first, m->ce, (size_t)s->chunk * sizeof *ce));
    }
}

/* Compute the gradients of a chunk's hidden rows x, in their place, and of the weight. */
static void chunk_gradients(struct work *r, struct engine *e, void *x, bool add)
{
    const struct net *n = &e->student;
    struct memory *m = &e->mem;
    const struct shape *s = &e->shape;
    const struct matmul head = {.rows = s->chunk, .out = s->vocab, .ldy = s->ld, .add = add};

    if (m->fp8_head.gradients) {
        student_fp8_head_backward(r, n, &m->fp8_head, e->shape.vocab, x, rows_e5m2(e), ld_e5m2(e),
                                  add);
        return;
    }
    matrix_dw(r, n->head, &head, m->logits, x);
    matrix_dx(r, n->head, &head, x, m->logits);
}

void head_losses(struct work *r, struct engine *e, int chunks, bool train)
{
    const struct shape *s = &e->shape;
    const struct net *n = &e->student;
    struct memory *m = &e->mem;

    head_gather(r, e, chunks);
    for (int first = 0; first < chunks * s->chunk; first += s->chunk) {
        char *x = head_logits(r, e, first);
        void *teacher = chunk_losses(r, e, first, train);
        if (m->token_kd)
            compare_chunk(r, e, first, teacher);
        if (train)
            chunk_gradients(r, e, x, r->add || first > 0);
    }
    if (train)
        OP(r, nj_row_gather(r->s, n->T,
                            &(struct nj_row_gather){.dst = m->student.branch,
                                                    .src = m->hidden,
                                                    .index = m->rows.inverse,
                                                    .M = s->rows,
                                                    .R = s->padded,
                                                    .C = n->c.hidden_size,
                                                    .scale = 1}));
}
