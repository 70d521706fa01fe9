/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.c: see ranks.h.
 */
#include "state/ranks.h"

#include "net/teacher_shard.h"
#include "nojit_ops.h"

#include <string.h>

static bool are_here(const struct engine *e)
{
    return e->shape.rank == RANKS_VIRTUAL;
}

/* ---- who has what ---- */

int ranks_slot(const struct shape *s, int micro)
{
    const int rank = micro % s->ranks, place = micro / s->ranks;
    if (s->rank == RANKS_VIRTUAL)
        return rank * s->micro + place;
    return s->rank == rank ? place : NO_SLOT;
}

int ranks_micro(const struct shape *s, int slot)
{
    const int rank = s->rank == RANKS_VIRTUAL ? slot / s->micro : s->rank;
    return slot % s->micro * s->ranks + rank;
}

int ranks_parts(const struct engine *e)
{
    return are_here(e) ? 1 : e->shape.pieces.count;
}

struct shard ranks_held(const struct engine *e, int part)
{
    const struct params *p = engine_trained(e);
    if (are_here(e))
        return (struct shard){.each = p->count, .count = p->count, .decayed = p->decayed};
    return pieces_held(&e->shape.pieces, p, part, e->shape.rank);
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
    OP(r, nj_cast_to_lp(r->s, NJ_LP,
                        &(struct nj_cast_to_lp){.dst = m->received, .src = m->grad, .n = count}));
    OP(r, nj_accumulate(r->s, NJ_LP,
                        &(struct nj_accumulate){.dst = m->total, .src = m->received, .n = count}));
}

static void add_losses(struct work *r, struct losses *total, const struct losses *sums)
{
    OP(r,
       nj_accumulate(r->s, NJ_F32,
                     &(struct nj_accumulate){.dst = (float *)total, .src = sums, .n = LOSS_SUMS}));
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
        OP(r, nj_accumulate(r->s, NJ_F32,
                            &(struct nj_accumulate){.dst = m->total, .src = m->grad, .n = count}));
    if (rank == 0)
        OP(r, nj_copy(r->s, m->total_sums, m->sums, sizeof *m->sums));
    else
        add_losses(r, m->total_sums, m->sums);
}

const struct losses *ranks_losses(struct work *r, struct engine *e)
{
    const struct memory *m = &e->mem;
    if (are_here(e))
        return m->sums;
    OP(r, nj_all_gather(e->o.comm, r->s, m->total_sums, m->sums, sizeof *m->sums));
    return m->total_sums;
}

/* Exchange the gradients of a piece, and add them in the order of ranks. The sum grows in the place of this rank's own
 * part: parts of earlier ranks are first added where they arrived, and a + b = b + a. */
static void exchange(struct work *r, struct engine *e, float *received, float *piece, int64_t shard)
{
    const int own = e->shape.rank;
    float *sum = piece + own * shard;
    OP(r, nj_all_to_all(e->o.comm, r->s, received, piece, (size_t)shard * sizeof *piece));
    for (int rank = 1; rank < own; rank++)
        OP(r, nj_accumulate(r->s, NJ_F32,
                            &(struct nj_accumulate){
                                .dst = received, .src = received + rank * shard, .n = shard}));
    if (own > 0)
        OP(r, nj_accumulate(r->s, NJ_F32,
                            &(struct nj_accumulate){.dst = sum, .src = received, .n = shard}));
    for (int rank = own + 1; rank < e->shape.ranks; rank++)
        OP(r, nj_accumulate(
                  r->s, NJ_F32,
                  &(struct nj_accumulate){.dst = sum, .src = received + rank * shard, .n = shard}));
}

static void exchange_rounded(struct work *r, struct engine *e, float *memory, float *piece,
                             int64_t shard)
{
    const int ranks = e->shape.ranks;
    uint16_t *sent = (uint16_t *)(void *)memory, *received = sent + ranks * shard;
    float *sum = piece + e->shape.rank * shard;
    OP(r, nj_cast_to_lp(r->s, NJ_LP,
                        &(struct nj_cast_to_lp){.dst = sent, .src = piece, .n = ranks * shard}));
    OP(r, nj_all_to_all(e->o.comm, r->s, received, sent, (size_t)shard * sizeof *sent));
    OP(r, nj_zero(r->s, sum, (size_t)shard * sizeof *sum));
    for (int rank = 0; rank < ranks; rank++)
        OP(r, nj_accumulate(
                  r->s, NJ_LP,
                  &(struct nj_accumulate){.dst = sum, .src = received + rank * shard, .n = shard}));
}

/* Compute the squares of one rank's shard of a piece. */
static void sumsq_of(struct work *r, const struct engine *e, int rank, int piece)
{
    const struct pieces *p = &e->shape.pieces;
    const struct shard s = pieces_held(p, engine_trained(e), piece, rank);
    float *part = e->mem.sumsq + ((size_t)rank * p->count + piece) * SUMSQ_PARTS;
    if (s.count > 0)
        OP(r, nj_grad_sumsq(
                  r->s, NJ_F32,
                  &(struct nj_grad_sumsq){
                      .part = part, .g = e->mem.total + s.first, .n = s.count, .P = SUMSQ_PARTS}));
    else
        OP(r, nj_zero(r->s, part, SUMSQ_PARTS * sizeof *part));
}

static bool is_overlapped(const struct engine *e, int piece)
{
    return e->shape.overlapped && pieces_overlapped(&e->shape.pieces, piece);
}

/* Exchange a piece, beside the work that is enqueued before engine_join(). */
static void exchange_piece(struct work *r, struct engine *e, int piece)
{
    const struct memory *m = &e->mem;
    const struct shard s = ranks_held(e, piece);
    float *received = is_overlapped(e, piece) ? m->overlapped : m->received;
    float *sent = m->grad + e->shape.pieces.first[piece];
    struct work aside = *r;
    OP(r, nj_comm_aside(e->o.comm, r->s, &aside.s));
    aside.rc = r->rc;
    if (s.each > 0)
        (are_rounded(e) ? exchange_rounded : exchange)(&aside, e, received, sent, s.each);
    sumsq_of(&aside, e, e->shape.rank, piece);
    r->rc = aside.rc;
}

void ranks_exchange(struct work *r, struct engine *e, int group)
{
    const int rest = e->shape.pieces.count - 1;
    exchange_piece(r, e, group + 1);
    if (group == 0 && is_overlapped(e, rest))
        exchange_piece(r, e, rest);
}

static void add_received(struct work *r, struct engine *e)
{
    struct losses *sums = e->mem.total_sums;
    for (int piece = 0; piece < e->shape.pieces.count; piece++)
        if (!is_overlapped(e, piece))
            exchange_piece(r, e, piece);
    ranks_losses(r, e); /* this also joins */
    for (int rank = 1; rank < e->shape.ranks; rank++)
        add_losses(r, sums, sums + rank);
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
    OP(&r, nj_zero(r.s, e->mem.sums, sizeof *e->mem.sums));
    return r.rc;
}

int ranks_sumsq(struct work *r, struct engine *e)
{
    const int ranks = e->shape.ranks, parts = pieces_sumsq(&e->shape.pieces);
    float *all = e->mem.sumsq;
    if (!are_here(e)) { /* this rank's own were computed with the exchange */
        OP(r, nj_all_gather(e->o.comm, r->s, all, all + (size_t)e->shape.rank * parts,
                            (size_t)parts * sizeof *all));
        return ranks * parts;
    }
    for (int rank = 0; rank < ranks; rank++)
        for (int piece = 0; piece < e->shape.pieces.count; piece++)
            sumsq_of(r, e, rank, piece);
    return ranks * parts;
}

/* ---- what each has updated ---- */

void ranks_gather(struct work *r, struct engine *e, int part)
{
    const size_t element = dtype_bytes(e->o.dtype);
    const struct shard s = ranks_held(e, part);
    char *all = e->mem.trained, *mine = all + (size_t)s.first * element;
    nj_stream *aside = NULL;
    if (are_here(e))
        return;
    OP(r, nj_comm_aside(e->o.comm, r->s, &aside));
    if (s.each > 0)
        OP(r, nj_all_gather(e->o.comm, aside, all + (size_t)e->shape.pieces.first[part] * element,
                            mine, (size_t)s.each * element));
    if (e->shape.overlapped)
        OP(r, nj_event_record(e->gathered[part], aside));
}

void ranks_arrive(struct work *r, struct engine *e, int group)
{
    OP(r, nj_stream_wait(r->s, e->gathered[group + 1]));
}

/* ---- what rank 0 has read ---- */

/* Arrays of the arena lie CARVE_ALIGN apart, which is room for filling up the last 16 bytes. */
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
    if (!at)
        return 0;
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

void ranks_collect(struct work *r, struct engine *e, const void *kept, size_t element)
{
    char *all = (char *)e->mem.grad;
    for (int part = 0; part < ranks_parts(e); part++) {
        const struct shard s = ranks_held(e, part);
        OP(r,
           nj_all_gather(e->o.comm, r->s, all + (size_t)e->shape.pieces.first[part] * element,
                         (const char *)kept + (size_t)s.kept * element, (size_t)s.each * element));
    }
}

void ranks_collecting(const struct engine *e, bool begins)
{
    if (e->o.collecting)
        e->o.collecting(e->o.collecting_user, begins);
}

void ranks_release(struct work *r, struct engine *e)
{
    const struct pieces *p = &e->shape.pieces;
    OP(r, nj_zero(r->s, e->mem.grad, (size_t)p->first[p->count] * sizeof *e->mem.grad));
}

void ranks_keep(struct work *r, struct engine *e, void *kept, size_t element)
{
    const char *all = (const char *)e->mem.grad;
    for (int part = 0; part < ranks_parts(e); part++) {
        const struct shard s = ranks_held(e, part);
        if (s.each > 0)
            OP(r, nj_copy(r->s, (char *)kept + (size_t)s.kept * element,
                          all + (size_t)s.first * element, (size_t)s.each * element));
    }
    ranks_release(r, e);
}
