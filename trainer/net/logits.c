/* SPDX-License-Identifier: Apache-2.0
 *
 * logits.c: see logits.h.
 */
#include "net/logits.h"

#include "nojit_ops.h"

void net_cap_logits(struct work *r, const struct net *n, int rows, int vocab, int ld, void *y)
{
    if (n->c.logit_cap > 0)
        OP(r, nj_softcap(r->s, n->T,
                         &(struct nj_softcap){
                             .y = y, .M = rows, .V = vocab, .Vs = ld, .cap = n->c.logit_cap}));
}

void net_logits(struct work *r, const struct net *n, const struct fp8_matrix *x8, const void *x,
                int rows, int vocab, int ld, void *y)
{
    const struct matmul p = {.rows = rows, .out = vocab, .ldy = ld, .x8 = x8};
    matrix_fwd(r, n->head, &p, y, x);
    net_cap_logits(r, n, rows, vocab, ld, y);
}
