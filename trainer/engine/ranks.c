/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.c: see ranks.h. All ranks are here, one after another, with one copy of what is trained.
 */
#include "engine/ranks.h"

#include "nojit_ops.h"

/* Of a shard, so that each begins where any access may. */
enum { SHARD_ELEMENTS = 64 };

int ranks_slot(const struct shape *s, int micro)
{
    return micro % s->ranks * s->micro + micro / s->ranks;
}

int ranks_micro(const struct shape *s, int slot)
{
    return slot % s->micro * s->ranks + slot / s->micro;
}

int64_t ranks_shard(int64_t count, int ranks)
{
    const int64_t each = (count + ranks - 1) / ranks;
    return (each + SHARD_ELEMENTS - 1) / SHARD_ELEMENTS * SHARD_ELEMENTS;
}

int ranks_add(struct engine *e, int rank)
{
    const struct memory *m = &e->mem;
    const int64_t count = engine_trained(e)->count;
    const size_t sums = sizeof m->pinned->sums;
    struct work r = engine_work(e);
    if (e->shape.ranks == 1)
        return 0;
    if (rank == 0) {
        OP(&r, nj_copy(r.s, m->total, m->grad, (size_t)count * sizeof *m->grad));
        OP(&r, nj_copy(r.s, m->total_sums, m->sums, sums));
    } else {
        OP(&r, nj_accumulate(r.s, NJ_F32, m->total, m->grad, count));
        OP(&r, nj_accumulate(r.s, NJ_F32, m->total_sums, m->sums, LOSS_SUMS));
    }
    OP(&r, nj_zero(r.s, m->sums, sums));
    return r.rc;
}

void ranks_sumsq(struct work *r, struct engine *e)
{
    const struct memory *m = &e->mem;
    const int64_t count = engine_trained(e)->count, shard = ranks_shard(count, e->shape.ranks);
    for (int rank = 0; rank < e->shape.ranks; rank++) {
        const int64_t first = rank * shard, left = count - first;
        float *part = m->sumsq + (size_t)rank * SUMSQ_PARTS;
        if (left > 0)
            OP(r, nj_grad_sumsq(r->s, NJ_F32, part, m->total + first, left < shard ? left : shard,
                                SUMSQ_PARTS));
        else
            OP(r, nj_zero(r->s, part, SUMSQ_PARTS * sizeof *part));
    }
}
