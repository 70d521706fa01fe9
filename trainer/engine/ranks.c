/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.c: see ranks.h.
 */
#include "engine/ranks.h"

#include "engine/teacher_shard.h"
#include "nojit_ops.h"

#include <string.h>

static bool are_here(const struct engine *e)
{
    return e->shape.rank == RANKS_HERE;
}

/* ---- who has what ---- */

int ranks_slot(const struct shape *s, int micro)
{
    const int rank = micro % s->ranks, place = micro / s->ranks;
    if (s->rank == RANKS_HERE)
        return rank * s->micro + place;
    return s->rank == rank ? place : NO_SLOT;
}

int ranks_micro(const struct shape *s, int slot)
{
    const int rank = s->rank == RANKS_HERE ? slot / s->micro : s->rank;
    return slot % s->micro * s->ranks + rank;
}

static int64_t between(int64_t x, int64_t most)
{
    return x < 0 ? 0 : x < most ? x : most;
}

struct shard ranks_held(const struct engine *e)
{
    const struct params *p = engine_trained(e);
    const int64_t each = are_here(e) ? p->count : plan_shard(p->count, e->shape.ranks);
    struct shard s = {.first = are_here(e) ? 0 : e->shape.rank * each};
    s.count = between(p->count - s.first, each);
    s.decayed = between(p->decayed - s.first, s.count);
    return s;
}

/* Of each rank `each` bytes, which lie in their order; this one's are there. */
static void gather(struct work *r, struct engine *e, void *all, size_t each)
{
    const char *mine = (const char *)all + (size_t)e->shape.rank * each;
    OP(r, nj_all_gather(e->o.comm, r->s, all, mine, each));
}

static size_t shard_bytes(const struct engine *e, size_t element)
{
    return (size_t)plan_shard(engine_trained(e)->count, e->shape.ranks) * element;
}

/* ---- sums ---- */

static bool are_rounded(const struct engine *e)
{
    return e->o.reduce_dtype == REDUCE_BF16;
}

static void add_rounded(struct work *r, struct engine *e, int rank)
{
    const struct memory *m = &e->mem;
    const int64_t count = engine_trained(e)->count;
    if (rank == 0)
        OP(r, nj_zero(r->s, m->total, (size_t)count * sizeof *m->total));
    OP(r, nj_cast_to_lp(r->s, NJ_LP, m->received, m->grad, count));
    OP(r, nj_accumulate(r->s, NJ_LP, m->total, m->received, count));
}

static void add_here(struct work *r, struct engine *e, int rank)
{
    const struct memory *m = &e->mem;
    const int64_t count = engine_trained(e)->count;
    if (are_rounded(e))
        add_rounded(r, e, rank);
    else if (rank == 0)
        OP(r, nj_copy(r->s, m->total, m->grad, (size_t)count * sizeof *m->grad));
    else
        OP(r, nj_accumulate(r->s, NJ_F32, m->total, m->grad, count));
    if (rank == 0)
        OP(r, nj_copy(r->s, m->total_sums, m->sums, sizeof m->pinned->sums));
    else
        OP(r, nj_accumulate(r->s, NJ_F32, m->total_sums, m->sums, LOSS_SUMS));
}

const float *ranks_losses(struct work *r, struct engine *e)
{
    const struct memory *m = &e->mem;
    if (are_here(e))
        return m->sums;
    OP(r, nj_all_gather(e->o.comm, r->s, m->total_sums, m->sums, sizeof m->pinned->sums));
    return m->total_sums;
}

static void exchange(struct work *r, struct engine *e)
{
    const struct memory *m = &e->mem;
    const int64_t shard = plan_shard(engine_trained(e)->count, e->shape.ranks);
    OP(r, nj_all_to_all(e->o.comm, r->s, m->received, m->grad, (size_t)shard * sizeof *m->grad));
    for (int rank = 1; rank < e->shape.ranks; rank++)
        OP(r, nj_accumulate(r->s, NJ_F32, m->total, m->received + rank * shard, shard));
}

/* The sum takes the memory of what was sent, of which it needs at most all. */
static void exchange_rounded(struct work *r, struct engine *e)
{
    const struct memory *m = &e->mem;
    const int ranks = e->shape.ranks;
    const int64_t shard = plan_shard(engine_trained(e)->count, ranks);
    uint16_t *sent = (uint16_t *)(void *)m->received, *received = sent + ranks * shard;
    OP(r, nj_cast_to_lp(r->s, NJ_LP, sent, m->grad, ranks * shard));
    OP(r, nj_all_to_all(e->o.comm, r->s, received, sent, (size_t)shard * sizeof *sent));
    OP(r, nj_zero(r->s, m->total, (size_t)shard * sizeof *m->total));
    for (int rank = 0; rank < ranks; rank++)
        OP(r, nj_accumulate(r->s, NJ_LP, m->total, received + rank * shard, shard));
}

static void add_received(struct work *r, struct engine *e)
{
    float *sums = e->mem.total_sums;
    if (are_rounded(e))
        exchange_rounded(r, e);
    else
        exchange(r, e);
    ranks_losses(r, e);
    for (int rank = 1; rank < e->shape.ranks; rank++)
        OP(r, nj_accumulate(r->s, NJ_F32, sums, sums + rank * LOSS_SUMS, LOSS_SUMS));
}

int ranks_add(struct engine *e, int rank)
{
    struct work r = engine_work(e);
    if (e->shape.ranks == 1)
        return 0;
    if (are_here(e))
        add_here(&r, e, rank);
    else
        add_received(&r, e);
    OP(&r, nj_zero(r.s, e->mem.sums, sizeof e->mem.pinned->sums));
    return r.rc;
}

static void sumsq_of(struct work *r, const struct engine *e, int rank, const float *shard)
{
    const int64_t count = engine_trained(e)->count, each = plan_shard(count, e->shape.ranks);
    const int64_t elements = between(count - rank * each, each);
    float *part = e->mem.sumsq + (size_t)rank * SUMSQ_PARTS;
    if (elements > 0)
        OP(r, nj_grad_sumsq(r->s, NJ_F32, part, shard, elements, SUMSQ_PARTS));
    else
        OP(r, nj_zero(r->s, part, SUMSQ_PARTS * sizeof *part));
}

void ranks_sumsq(struct work *r, struct engine *e)
{
    const struct memory *m = &e->mem;
    const int64_t shard = plan_shard(engine_trained(e)->count, e->shape.ranks);
    if (are_here(e)) {
        for (int rank = 0; rank < e->shape.ranks; rank++)
            sumsq_of(r, e, rank, m->total + rank * shard);
        return;
    }
    sumsq_of(r, e, e->shape.rank, m->total);
    gather(r, e, m->sumsq, SUMSQ_PARTS * sizeof *m->sumsq);
}

/* ---- what each has updated ---- */

void ranks_gather(struct work *r, struct engine *e)
{
    const size_t each = shard_bytes(e, dtype_bytes(e->o.dtype));
    char *all = e->mem.trained;
    if (!are_here(e))
        OP(r, nj_all_gather_aside(e->o.comm, r->s, all, all + (size_t)e->shape.rank * each, each));
}

/* ---- what rank 0 has read ---- */

/* Arrays of the arena lie CARVE_ALIGN apart, which is room for what fills up the last 16 bytes. */
void ranks_send(struct work *r, struct engine *e, void *device, size_t bytes)
{
    if (!are_here(e) && e->o.given)
        OP(r, nj_broadcast(e->o.comm, r->s, device, (bytes + 15) / 16 * 16, 0));
}

int ranks_share_layer(struct engine *e, int layer)
{
    struct work r = engine_work(e);
    size_t bytes;
    char *at = teacher_shard_loaded(&e->teacher.net, layer, &bytes);
    ranks_send(&r, e, at, bytes);
    teacher_shard_keep(&r, &e->teacher.net, layer);
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "sharing out a layer of the teacher");
}

int ranks_tell(struct engine *e, void *host, size_t bytes)
{
    struct work r = engine_work(e);
    char *pinned = e->mem.transfer,
         *device = e->mem.hidden; /* nothing is in it between two steps */
    if (are_here(e) || !e->o.given)
        return 0;
    memcpy(pinned, host, bytes);
    OP(&r, nj_copy(r.s, device, pinned, bytes));
    ranks_send(&r, e, device, bytes);
    OP(&r, nj_copy(r.s, pinned, device, bytes));
    OP(&r, nj_stream_sync(r.s));
    memcpy(host, pinned, bytes);
    return r.rc == 0 ? 0 : engine_fail(e, r.rc, "telling all ranks what rank 0 has read");
}

/* ---- the whole of what each has a shard of ---- */

void ranks_collect(struct work *r, struct engine *e, const void *shard, size_t element)
{
    OP(r, nj_all_gather(e->o.comm, r->s, e->mem.grad, shard, shard_bytes(e, element)));
}

void ranks_collecting(const struct engine *e, bool begins)
{
    if (e->o.collecting)
        e->o.collecting(e->o.collecting_user, begins);
}

void ranks_release(struct work *r, struct engine *e)
{
    const size_t each = shard_bytes(e, sizeof *e->mem.grad);
    OP(r, nj_zero(r->s, e->mem.grad, (size_t)e->shape.ranks * each));
}

void ranks_keep(struct work *r, struct engine *e, void *shard, size_t element)
{
    const size_t bytes = shard_bytes(e, element);
    OP(r, nj_copy(r->s, shard, (const char *)e->mem.grad + (size_t)e->shape.rank * bytes, bytes));
    ranks_release(r, e);
}
