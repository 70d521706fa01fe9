/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher.c: a model that only runs forward. It keeps hidden rows, not logits: those are made chunk
 * by chunk where the head needs them.
 */
#include "engine/teacher.h"

#include "engine/f8.h"
#include "engine/forward.h"
#include "engine/quant.h"
#include "nojit_ops.h"

void teacher_forward(struct work *r, struct teacher *t, const struct rows *rows)
{
    net_forward(r, &t->net, &t->acts, rows);
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
    OP(r, nj_row_gather(r->s, t->net.T, t->hidden, t->acts.y, rows->valid, padded,
                        acts_rows(&t->acts), t->net.c.hidden_size));
}

/* Slices of the vocabulary, as many rows of the head as the scratch holds. */
static void quant_logits(struct work *r, const struct net *n, const struct linear *whole, char *y,
                         const char *x)
{
    const int most = quant_head_rows(n);
    for (int from = 0; from < whole->out; from += most) {
        struct linear slice = *whole;
        slice.out = whole->out - from < most ? whole->out - from : most;
        linear_fwd(r, &slice, y + (size_t)from * dtype_bytes(n->T), x,
                   quant_expand(r, n, net_head(n), from, slice.out));
    }
}

void teacher_logits(struct work *r, const struct teacher *t, int first, int rows, int vocab, int ld,
                    void *logits)
{
    const struct net *n = &t->net;
    int C = n->c.hidden_size;
    const char *x = t->hidden + (size_t)first * (size_t)C * dtype_bytes(n->T);
    const struct linear head = {n->T, rows, vocab, C, .ldy = ld};
    if (n->f8) {
        const struct linear wide = {n->T, rows, f8_logits(vocab), C, .ldy = ld};
        f8_quantize(r, n, &t->x, x, rows, C);
        linear_f8(r, &wide, logits, &t->x, &n->f8[net_head(n)]);
        return;
    }
    if (n->quant) {
        quant_logits(r, n, &head, logits, x);
        return;
    }
    linear_fwd(r, &head, logits, x, net_weight(n, n->p.head));
}
