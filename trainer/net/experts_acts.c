/* SPDX-License-Identifier: Apache-2.0
 *
 * experts_acts.c: what a router decides, as the forward pass leaves it to the backward pass.
 */
#include "base/checked.h"
#include "net/experts.h"

static int64_t experts_of(const struct block *b)
{
    return b->experts;
}

static int64_t pairs_of(const struct block *b)
{
    return b->experts_used;
}

size_t experts_most(const struct net *n)
{
    return net_most(n, experts_of);
}

size_t experts_most_used(const struct net *n)
{
    return net_most(n, pairs_of);
}

static void *take(struct carve *m, size_t rows, size_t each, size_t bytes)
{
    return carve_take(m, size_product(rows, each, bytes));
}

void experts_carve_routes(size_t rows, size_t pairs, size_t experts, struct carve *m,
                          struct expert_acts *e)
{
    e->logits = take(m, rows, experts, sizeof *e->logits);
    e->chosen = take(m, rows, pairs, sizeof *e->chosen);
    e->weight = take(m, rows, pairs, sizeof *e->weight);
    e->first = take(m, experts + 1, 1, sizeof *e->first);
    e->row = take(m, rows, pairs, sizeof *e->row);
    e->place = take(m, rows, pairs, sizeof *e->place);
}

void experts_use_kept(const struct block_pass *p)
{
    const struct block *b = p->b;
    const size_t rows = (size_t)acts_rows(p->a);
    struct carve routes = {.base = p->v.kept[EXPERTS_KEPT_ROUTES]};
    if (p->a->mode != ACTS_TRAIN)
        return;
    p->a->experts.gate_up = p->v.kept[EXPERTS_KEPT_GATE_UP];
    experts_carve_routes(rows, (size_t)b->experts_used, (size_t)b->experts, &routes,
                         &p->a->experts);
}
