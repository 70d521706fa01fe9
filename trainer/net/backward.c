/* SPDX-License-Identifier: Apache-2.0
 *
 * backward.c: the backward pass of one transformer. dx is the gradient of the residual stream and is updated in
 * place; branch holds the gradient of the normed rows, and before it that of an output that is normed. Normed rows and
 * activations are recomputed from what the forward pass kept; products only if --recompute asks for it, by the code of
 * forward.c. Gradients of weights go to n->grad in float32; without it only those of adapters are computed.
 */
#include "net/backward.h"

#include "net/experts.h"
#include "net/forward.h"
#include "net/norm.h"
#include "net/student_fp8.h"
#include "nojit_ops.h"

/* Return the last block of all. */
static struct block_acts last_block(const struct net *n, const struct acts *a)
{
    const int last = n->c.layers - 1;
    return acts_block(n, a, last, arch_layer(&n->c.arch, last)->blocks - 1);
}

void net_backward_norm(struct work *r, const struct net *n, struct acts *a)
{
    const struct block_acts last = last_block(n, a);
    student_fp8_begin_backward(r, n, a);
    experts_begin_backward(r, n, a);
    norm_final_bwd(r, n, a, last.next, last.next_rstd);
}

void net_backward_layers(struct work *r, const struct net *n, struct acts *a,
                         const struct rows *rows, int from, int to)
{
    for (int l = to - 1; l >= from; l--) {
        net_forward_again(r, n, a, rows, l);
        for (int i = arch_layer(&n->c.arch, l)->blocks - 1; i >= 0; i--) {
            const struct block_pass p = net_block(n, a, rows, l, i);
            norm_after_bwd(r, &p);
            block_ops[p.b->kind]->backward(r, &p);
            norm_bwd(r, &p);
        }
    }
}

void net_backward_embedding(struct work *r, const struct net *n, struct acts *a,
                            const struct rows *rows)
{
    float *grad = n->embedding->grad;
    if (!grad)
        return;
    if (n->c.embed_normed) {
        net_gather_embedding(r, n, a, rows, a->y);
        norm_embedding_bwd(r, n, a, acts_block(n, a, 0, 0).rstd);
    }
    OP(r, nj_embed_bwd(r->s, n->T,
                       &(struct nj_embed_bwd){.dw = grad,
                                              .dy = a->dx,
                                              .ids = rows->ids,
                                              .order = rows->order,
                                              .runs = rows->runs,
                                              .N = acts_rows(a),
                                              .C = n->c.hidden_size,
                                              .V = n->c.vocab_size,
                                              .scale = net_embedding_scale(n)}));
}

void net_backward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows)
{
    net_backward_norm(r, n, a);
    net_backward_layers(r, n, a, rows, 0, n->c.layers);
    net_backward_embedding(r, n, a, rows);
}
