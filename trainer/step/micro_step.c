/* SPDX-License-Identifier: Apache-2.0
 *
 * micro_step.c: see micro_step.h.
 */
#include "step/micro_step.h"

#include "net/backward.h"
#include "net/forward.h"
#include "step/head.h"

/* Clear the gradients that no GEMM of the first micro-batch writes: gains, biases and taps, rows of the
 * head beyond the shared vocabulary, an embedding that is not the head. Nothing here is in the
 * layers' matrices, where the head's logits may lie until the backward pass. */
static void clear_gradients(struct work *r, const struct engine *e, int chunks)
{
    const struct params *p = &e->student.p;
    const int64_t table = (int64_t)e->student.c.vocab_size * e->student.c.hidden_size;
    const int64_t written = chunks > 0 ? (int64_t)e->shape.vocab * e->student.c.hidden_size : 0;
    float *grad = e->student.grad;
    const struct {
        int64_t first, count;
    } part[] = {
        {p->matrices, p->count - p->matrices},
        {p->head + written, table - written},
        {p->embed, p->embed == p->head ? 0 : table},
    };
    for (int i = 0; i < 3; i++)
        if (part[i].count > 0)
            OP(r, nj_zero(r->s, grad + part[i].first, (size_t)part[i].count * sizeof *grad));
}

/* Run the teacher, unless it has run already, and keep its rows that have a target. */
static void before_student(struct work *r, struct engine *e, bool train)
{
    if (!train || !e->teacher.schedule.runs_ahead)
        teacher_forward(r, &e->teacher, &e->mem.rows, 1);
    teacher_keep(r, &e->teacher, &e->mem.rows);
    e->mem.student.lora.key = train ? e->mem.rows.key : NULL;
    e->mem.student.experts.loss = &e->mem.sums->balance;
    e->mem.student.experts.state = e->mem.state;
}

/* Compute the losses, and with train the gradients of the head. */
static void after_student(struct work *r, struct engine *e, int chunks, bool train)
{
    if (train && e->student.grad && !r->add)
        clear_gradients(r, e, chunks);
    head_losses(r, e, chunks, train);
}

void micro_step(struct work *r, struct engine *e, int chunks, bool train)
{
    before_student(r, e, train);
    net_forward(r, &e->student, &e->mem.student, &e->mem.rows);
    after_student(r, e, chunks, train);
    if (train)
        net_backward(r, &e->student, &e->mem.student, &e->mem.rows);
}

void micro_forward_group(struct work *r, struct engine *e, int group)
{
    const int *layer = e->shape.pieces.layer;
    if (group == 0) {
        before_student(r, e, true);
        net_forward_embedding(r, &e->student, &e->mem.student, &e->mem.rows);
    }
    net_forward_layers(r, &e->student, &e->mem.student, &e->mem.rows, layer[group],
                       layer[group + 1]);
}

void micro_head(struct work *r, struct engine *e, int chunks)
{
    after_student(r, e, chunks, true);
    net_backward_norm(r, &e->student, &e->mem.student);
}

void micro_backward_part(struct work *r, struct engine *e, int part)
{
    const struct pieces *p = &e->shape.pieces;
    const int group = p->groups - 1 - part;
    if (group >= 0)
        net_backward_layers(r, &e->student, &e->mem.student, &e->mem.rows, p->layer[group],
                            p->layer[group + 1]);
    else
        net_backward_embedding(r, &e->student, &e->mem.student, &e->mem.rows);
}
