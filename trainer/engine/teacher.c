/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher.c: a model that only runs forward. It keeps hidden rows, not logits: those are made chunk
 * by chunk where the head needs them.
 */
#include "engine/teacher.h"

#include "engine/f8.h"
#include "engine/forward.h"
#include "nojit_ops.h"

void teacher_forward(struct work *r, struct teacher *t, const struct rows *rows, int padded)
{
    net_forward(r, &t->net, &t->acts, rows);
    OP(r, nj_row_gather(r->s, t->net.T, t->hidden, t->acts.y, rows->valid, padded,
                        acts_rows(&t->acts), t->net.c.hidden_size));
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
        linear_f8(r, &wide, logits, &t->x, &n->f8[n->c.layers * PRODUCTS]);
        return;
    }
    linear_fwd(r, &head, logits, x, net_weight(n, n->p.head));
}
