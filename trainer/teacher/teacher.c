/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher.c: a model that only runs forward. It keeps hidden rows, not logits, which are computed chunk by chunk when
 * the head needs them.
 */
#include "teacher/teacher.h"

#include "net/forward.h"
#include "net/logits.h"
#include "nojit_ops.h"

void teacher_forward(struct work *r, struct teacher *t, const struct rows *rows)
{
    const struct rows own = rows_of_teacher(rows);
    net_forward(r, &t->net, &t->acts, &own);
}

void teacher_pass(struct work *r, struct teacher *t)
{
    net_forward(r, &t->net, &t->pass, &t->rows);
}

void teacher_rows(struct work *r, struct teacher *t, int batch)
{
    const size_t bytes =
        (size_t)acts_rows(&t->acts) * (size_t)t->net.c.hidden_size * dtype_bytes(t->net.T);
    OP(r, nj_copy(r->s, t->acts.y, t->pass.y + (size_t)batch * bytes, bytes));
}

void teacher_keep(struct work *r, struct teacher *t, const struct rows *rows, int padded)
{
    OP(r, nj_row_gather(r->s, t->net.T,
                        &(struct nj_row_gather){.dst = t->hidden,
                                                .src = t->acts.y,
                                                .index = rows_of_teacher(rows).valid,
                                                .M = padded,
                                                .R = acts_rows(&t->acts),
                                                .C = t->net.c.hidden_size}));
}

void teacher_logits(struct work *r, const struct teacher *t, int first, int rows, int vocab, int ld,
                    void *logits)
{
    const struct net *n = &t->net;
    const char *x = t->hidden + (size_t)first * (size_t)n->c.hidden_size * dtype_bytes(n->T);
    net_logits(r, n, &t->x, x, rows, vocab, ld, logits);
}
