/* SPDX-License-Identifier: Apache-2.0
 *
 * dealt.c: see dealt.h. It is a layer between files and ranks, so that the source of files does not depend on ranks.
 */
#include "batch/dealt.h"

#include "base/check.h"
#include "base/try.h"
#include "batch/data_struct.h"
#include "io/error.h"

#include <stdlib.h>

/* The batches of all ranks. */
struct dealt {
    struct batch_source source;
    struct batch_source
        *from; /* source; on ranks that do not read, one without files, at the common position */
    struct group *group;
    struct batch batch; /* batch of a rank that does not read */
    uint64_t count;     /* number of batches since the last seek */
};

static struct dealt *of(struct batch_source *s)
{
    return (struct dealt *)(void *)s;
}

static struct batch_source *alone(struct batch_source *s)
{
    return of(s)->from;
}

static void tell(struct batch_source *s, struct data_state *out)
{
    batches_tell(of(s)->from, out);
}

static void seek(struct batch_source *s, const struct data_state *at)
{
    of(s)->count = 0;
    batches_seek(of(s)->from, at);
}

static int64_t rows(struct batch_source *s)
{
    return batches_rows(of(s)->from);
}

static void close_dealt(struct batch_source *s)
{
    batch_free(&of(s)->batch);
    batches_close(of(s)->from);
    free(of(s));
}

/* Open the source in front of *s. */
static int open_dealt(struct batch_source **s, struct group *g, const struct batch_source_ops *ops)
{
    struct dealt *d = calloc(1, sizeof *d);
    if (!d)
        return fail(NJ_E_NOMEM, "out of memory");
    *d = (struct dealt){.source = {ops}, .from = *s, .group = g};
    *s = &d->source;
    return 0;
}

/* ---- rank 0 reads ---- */

/* Facts about the data that all ranks get. */
struct summary {
    int64_t tokens, rows;
    uint64_t hash;
    size_t sources;
    bool weighted;
    enum packing packing;
};

static int take_summary(struct data *d, const struct summary *s)
{
    d->tokens = s->tokens;
    d->weighted = s->weighted;
    d->packing = s->packing;
    d->hasher.hash = s->hash;
    d->order.total = s->rows;
    d->source = calloc(s->sources, sizeof *d->source);
    d->order.share = calloc(s->sources, sizeof *d->order.share);
    if (!d->source || !d->order.share)
        return fail(NJ_E_NOMEM, "out of memory for %zu sources", s->sources);
    d->order.count = s->sources;
    return 0;
}

static int share_summary(struct data *d, struct group *g)
{
    struct summary s = {d->tokens,      d->order.total, d->hasher.hash,
                        d->order.count, d->weighted,    d->packing};
    TRY(group_share(g, &s, sizeof s));
    if (!group_leads(g))
        TRY(take_summary(d, &s));
    return group_share(g, d->order.share, s.sources * sizeof *d->order.share);
}

/* Facts about a batch that all ranks get. */
struct told {
    int rc;
    int64_t valid;
    size_t bytes;         /* bytes of its arrays */
    struct data_state at; /* position after the batch */
};

static int next(struct batch_source *s, struct batch *out)
{
    struct dealt *d = of(s);
    struct told it = {0};
    *out = d->batch;
    if (group_leads(d->group)) {
        it.rc = batches_next(d->from, out);
        it.valid = out->valid;
        it.bytes = out->bytes;
        batches_tell(d->from, &it.at);
    }
    int rc = group_share(d->group, &it, sizeof it);
    if (rc != 0 || (it.rc && group_leads(d->group)))
        return rc != 0 ? rc : it.rc;
    if (it.rc < 0)
        return fail(NJ_ELSEWHERE, "rank 0 cannot read the data; it says why");
    CHECK(it.rc > 0 || it.bytes == out->bytes); /* ranks that differ take parts of two batches */
    out->valid = it.valid;
    batches_seek(d->from, &it.at);
    return it.rc ? it.rc
                 : group_deal(d->group, (int)(d->count++ % (uint64_t)d->group->place.size),
                              out->memory, out->bytes);
}

static int resize(struct batch_source *s, int batch_size)
{
    struct dealt *d = of(s);
    return group_leads(d->group) ? batches_resize(d->from, batch_size)
                                 : batch_resize(&d->batch, batch_size, d->batch.S, DATA_ARRAYS);
}

static const struct batch_source_ops ops_dealt = {
    .next = next,
    .tell = tell,
    .seek = seek,
    .resize = resize,
    .rows = rows,
    .close = close_dealt,
    .alone = alone,
};

int batches_deal(struct batch_source **s, struct data **d, const struct data_options *o,
                 struct group *g)
{
    int rc = 0;
    if (g->place.size == 1)
        return rc;
    if (!group_leads(g)) {
        rc = data_none(o->seq_len, d);
        *s = rc ? NULL : data_batches(*d);
    }
    if (rc == 0)
        rc = share_summary(*d, g);
    if (rc == 0)
        rc = open_dealt(s, g, &ops_dealt);
    if (rc == 0 && !group_leads(g))
        rc = batch_allocate(&of(*s)->batch, o->batch_size, o->seq_len, DATA_ARRAYS);
    return rc;
}

/* ---- each rank reads ---- */

static int next_alike(struct batch_source *s, struct batch *out)
{
    return batches_next(of(s)->from, out);
}

static int resize_alike(struct batch_source *s, int batch_size)
{
    return batches_resize(of(s)->from, batch_size);
}

static int agree(struct batch_source *s, int rc)
{
    struct group *g = of(s)->group;
    int first = -1;
    const int failed = group_agree(g, rc < 0, &first);
    if (failed || first < 0 || first == g->place.rank)
        return failed ? failed : rc;
    return fail(NJ_ELSEWHERE, "rank %d cannot read the data; it says why", first);
}

static const struct batch_source_ops ops_alike = {
    .next = next_alike,
    .tell = tell,
    .seek = seek,
    .resize = resize_alike,
    .rows = rows,
    .close = close_dealt,
    .agree = agree,
    .alone = alone,
};

int batches_read_alike(struct batch_source **s, struct group *g)
{
    return open_dealt(s, g, &ops_alike);
}
