/* SPDX-License-Identifier: Apache-2.0
 *
 * experts_balance.c: the loss that balances the experts of a student (docs/objective.md): sums of all layers, and the
 * gradient of the probabilities that follows from them.
 */
#include "base/checked.h"
#include "net/experts.h"
#include "nojit_ops.h"

/* The sums of all layers are read by the backward pass; nothing overwrites them before. */
void experts_carve_shares(const struct net *n, struct carve *m, struct acts *a)
{
    struct expert_acts *e = &a->experts;
    const size_t experts = experts_most(n), wide = size_mul(2, experts);
    if (a->mode != ACTS_TRAIN || !(n->balance > 0) || experts == 0)
        return;
    e->share_part = carve_take(m, size_product(PARTIAL_SUMS, wide, sizeof *e->share_part));
    e->shares = carve_take(m, size_mul(wide, sizeof *e->shares));
    e->dprob = carve_take(m, size_mul(experts, sizeof *e->dprob));
}

void experts_begin(struct work *r, const struct net *n, struct acts *a)
{
    const struct expert_acts *e = &a->experts;
    if (e->shares)
        OP(r, nj_zero(r->s, e->shares, 2 * experts_most(n) * sizeof *e->shares));
}

void experts_add_shares(struct work *r, const struct block_pass *p)
{
    const struct expert_acts *e = &p->a->experts;
    const int N = acts_rows(p->a), E = p->b->experts, P = partial_sums(N);
    if (!e->shares)
        return;
    OP(r, nj_expert_shares(r->s, NJ_F32,
                           &(struct nj_expert_shares){.part = e->share_part,
                                                      .logits = e->logits,
                                                      .chosen = e->chosen,
                                                      .keep = p->rows->keep,
                                                      .N = N,
                                                      .E = E,
                                                      .J = p->b->experts_used,
                                                      .P = P}));
    OP(r,
       nj_colsum(r->s, NJ_F32,
                 &(struct nj_colsum){.dst = e->shares, .part = e->share_part, .P = P, .C = 2 * E}));
}

void experts_begin_backward(struct work *r, const struct net *n, struct acts *a)
{
    const struct expert_acts *e = &a->experts;
    const struct block *b = arch_first(&n->c.arch, n->c.layers, BLOCK_EXPERTS);
    if (e->shares)
        OP(r, nj_expert_balance(r->s, NJ_F32,
                                &(struct nj_expert_balance){.dprob = e->dprob,
                                                            .loss = e->loss,
                                                            .sums = e->shares,
                                                            .state = e->state,
                                                            .E = b->experts,
                                                            .J = b->experts_used,
                                                            .factor = n->balance}));
}
