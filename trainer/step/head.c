/* SPDX-License-Identifier: Apache-2.0
 *
 * head.c: logits, objective and its gradient, in chunks of rows that have a target. Two buffers of
 * logits are reused; the student's, which may lie in gradients that are still idle (plan.c), become their
 * gradient in place (docs/objective.md). An FP8 student's is e5m2, in half the bytes.
 */
#include "step/head.h"

#include "nojit_ops.h"

/* The total variation distances of a chunk's tokens, which leave the logits as they are. */
static void add_distances(struct work *r, struct engine *e, int first)
{
    const struct shape *s = &e->shape;
    struct memory *m = &e->mem;
    OP(r, nj_tv_head(r->s, e->student.T, m->logits, m->kd, m->ce, m->entropy, m->agree,
                     m->teacher_logits, m->rows.target + first, m->state, s->chunk, s->vocab, s->ld,
                     s->ld, 1, 0, false));
    OP(r, nj_loss_reduce(r->s, NJ_F32, (float *)&m->sums->distance, m->kd, m->ce, m->entropy,
                         m->agree, s->chunk));
}

/* Of a chunk's tokens those of answers, before the logits become their gradient. This reads the logits once more, but
 * kd_head, which has no register left for these sums, stays as it is for all other runs. */
static void add_answers(struct work *r, struct engine *e, int first)
{
    const struct shape *s = &e->shape;
    struct memory *m = &e->mem;
    OP(r, nj_kl_rows(r->s, e->student.T, m->kd, m->ce, m->entropy, m->agree, m->logits,
                     m->teacher_logits, m->rows.answer + first, s->chunk, s->vocab, s->ld, s->ld,
                     e->o.temperature));
    OP(r, nj_loss_reduce(r->s, NJ_F32, (float *)&m->sums->answers, m->kd, m->ce, m->entropy,
                         m->agree, s->chunk));
}

/* At the end of the logits' rows: where their gradient lies as e5m2. */
static char *rows_e5m2(const struct engine *e)
{
    return e->mem.logits + (dtype_bytes(e->student.T) - 1) * (size_t)e->shape.ld;
}

static int ld_e5m2(const struct engine *e)
{
    return (int)dtype_bytes(e->student.T) * e->shape.ld;
}

static void chunk_losses(struct work *r, struct engine *e, int first, bool train)
{
    const struct shape *s = &e->shape;
    struct memory *m = &e->mem;
    void *teacher = e->has_teacher ? m->teacher_logits : NULL;
    if (e->has_teacher)
        teacher_logits(r, &e->teacher, first, s->chunk, s->vocab, s->ld, teacher);
    if (m->token_kd && e->o.acceptance)
        add_distances(r, e, first);
    if (train && (s->arrays & USE_ANSWERS))
        add_answers(r, e, first);
    if (e->has_teacher && e->o.objective == OBJECTIVE_TVD)
        OP(r, nj_tv_head(r->s, e->student.T, m->logits, m->kd, m->ce, m->entropy, m->agree, teacher,
                         m->rows.target + first, m->state, s->chunk, s->vocab, s->ld, s->ld,
                         e->o.temperature, e->o.kd_ratio, true));
    else if (train && m->f8_head.gradients)
        OP(r, nj_kd_head_e5m2(r->s, e->student.T, rows_e5m2(e), m->f8_head.dy_scale, m->kd, m->ce,
                              m->entropy, m->agree, m->logits, teacher, m->rows.target + first,
                              m->state, m->rows.key, s->chunk, s->vocab, s->ld, s->ld, ld_e5m2(e),
                              first, e->o.temperature, e->o.kd_ratio, e->o.beta));
    else
        OP(r, nj_kd_head(r->s, e->student.T, m->logits, m->kd, m->ce, m->entropy, m->agree, teacher,
                         m->rows.target + first, m->state, s->chunk, s->vocab, s->ld, s->ld,
                         e->o.temperature, e->o.kd_ratio, e->o.beta));
    OP(r, nj_loss_reduce(r->s, NJ_F32, (float *)&m->sums->objective, m->kd, m->ce, m->entropy,
                         m->agree, s->chunk));
}

/* Brings the divergences of a chunk's tokens and the teacher's cross-entropies to the host. The
 * chunk's teacher logits are lost. */
static void compare_chunk(struct work *r, struct engine *e, int first)
{
    const struct shape *s = &e->shape;
    struct memory *m = &e->mem;
    size_t bytes = (size_t)s->chunk * sizeof(float);
    OP(r, nj_copy(r->s, m->token_kd + first, m->kd, bytes));
    /* The teacher's own cross-entropy: its logits are done with. */
    OP(r, nj_kd_head(r->s, e->teacher.net.T, m->teacher_logits, m->kd, m->ce, m->entropy, m->agree,
                     NULL, m->rows.target + first, m->state, s->chunk, s->vocab, s->ld, s->ld, 1, 0,
                     0));
    OP(r, nj_copy(r->s, m->token_ce + first, m->ce, bytes));
}

void head_gather(struct work *r, struct engine *e, int chunks)
{
    const struct shape *s = &e->shape;
    if (chunks == 0)
        return;
    OP(r, nj_row_gather(r->s, e->student.T, e->mem.hidden, e->mem.student.y, e->mem.rows.valid,
                        chunks * s->chunk, s->rows, e->student.c.hidden_size));
    if (student_f8_head_on(&e->student, &e->mem.student))
        student_f8_head_weight(r, &e->student, &e->mem.f8_head); /* may lie in y */
}

/* Return the product of a chunk's rows with the LM head. */
static struct matmul head_of(const struct engine *e)
{
    const struct shape *s = &e->shape;
    return (struct matmul){.rows = s->chunk, .out = s->vocab, .ldy = s->ld};
}

char *head_logits(struct work *r, struct engine *e, int first)
{
    const struct net *n = &e->student;
    const struct matmul head = head_of(e);
    char *x = e->mem.hidden + (size_t)first * (size_t)n->c.hidden_size * dtype_bytes(n->T);
    if (student_f8_head_on(n, &e->mem.student))
        student_f8_head_logits(r, n, &e->mem.f8_head, e->mem.logits, x);
    else
        matrix_fwd(r, n->head, &head, e->mem.logits, x);
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
        OP(r,
           nj_kd_head(r->s, e->student.T, m->logits, m->kd, m->ce, m->entropy, m->agree, NULL,
                      m->rows.target + first, m->state, s->chunk, s->vocab, s->ld, s->ld, 1, 0, 0));
        OP(r, nj_copy(r->s, ce + first, m->ce, (size_t)s->chunk * sizeof *ce));
    }
}

/* Of a chunk's hidden rows x, which become their gradient, and of the weight. */
static void chunk_gradients(struct work *r, struct engine *e, void *x, bool add)
{
    const struct net *n = &e->student;
    struct memory *m = &e->mem;
    struct matmul head = head_of(e);

    if (m->f8_head.gradients) {
        student_f8_head_backward(r, n, &m->f8_head, e->shape.vocab, x, rows_e5m2(e), ld_e5m2(e),
                                 add);
        return;
    }
    head.add = add;
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
        chunk_losses(r, e, first, train);
        if (m->token_kd)
            compare_chunk(r, e, first);
        if (train)
            chunk_gradients(r, e, x, r->add || first > 0);
    }
    if (train)
        OP(r, nj_row_gather(r->s, n->T, m->student.branch, m->hidden, m->rows.inverse, s->rows,
                            s->padded, n->c.hidden_size));
}
