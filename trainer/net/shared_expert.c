/* SPDX-License-Identifier: Apache-2.0
 *
 * shared_expert.c: see shared_expert.h. It is a gated MLP. A gate of each row, if there is one, multiplies the
 * activation, which is narrower than the output and is read by the same product.
 */
#include "net/shared_expert.h"

#include "net/activation.h"
#include "net/layer_gemm.h"
#include "net/step_product.h"
#include "nojit_ops.h"

/* Multiply activations by the gates that follow from the rows x. */
static void gate(struct work *r, const struct block_pass *p, void *act, const void *x)
{
    const struct block *b = p->b;
    if (!block_has(b, FEATURE_SHARED_GATE))
        return;
    const void *w = product_weight(r, p->a, &p->matrix[EXPERTS_SHARED_SWITCH]);
    OP(r, nj_row_gate(r->s, p->n->T,
                      &(struct nj_row_gate){.y = act,
                                            .d = act,
                                            .x = x,
                                            .w = w,
                                            .N = acts_rows(p->a),
                                            .I = b->shared_size,
                                            .C = p->n->c.hidden_size}));
}

const void *shared_expert_fwd(struct work *r, const struct block_pass *p)
{
    const struct expert_acts *e = &p->a->experts;
    struct block mlp = *p->b;
    if (!block_has(p->b, FEATURE_SHARED_EXPERT))
        return NULL;
    mlp.ffn_size = mlp.shared_size;
    product_fwd(r, p->a, &p->matrix[EXPERTS_SHARED_GATE_UP], e->gate_up, block_rows(p));
    activation_rows(r, &mlp, p->n->T, e->act, e->gate_up, acts_rows(p->a));
    gate(r, p, e->act, block_rows(p));
    product_fwd(r, p->a, &p->matrix[EXPERTS_SHARED_DOWN], p->v.output, e->act);
    return p->v.output;
}

void shared_expert_step(struct work *r, const struct block_pass *p)
{
    void *act = p->a->experts.act;
    if (!block_has(p->b, FEATURE_SHARED_EXPERT))
        return;
    step_normed_swiglu(r, p, EXPERTS_SHARED_GATE_UP, act);
    gate(r, p, act, p->a->y);
    step_add_product(r, p, EXPERTS_SHARED_DOWN, act);
}
