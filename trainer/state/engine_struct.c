/* SPDX-License-Identifier: Apache-2.0
 *
 * engine_struct.c: functions that every part of the engine begins or fails with.
 */
#include "state/engine_struct.h"

#include "base/try.h"
#include "io/error.h"

int engine_join(struct engine *e)
{
    return e->shape.rank == RANKS_VIRTUAL ? 0 : nj_comm_join(e->o.comm, e->stream);
}

struct work engine_work(struct engine *e)
{
    return (struct work){.ctx = e->ctx, .s = e->stream, .rc = engine_join(e)};
}

int engine_fail(const struct engine *e, int rc, const char *what)
{
    return e->teacher.failed ? rc : fail_context(rc, e->ctx, what);
}

const struct params *engine_trained(const struct engine *e)
{
    return e->student.trained;
}

bool engine_gathers(const struct engine *e)
{
    return e->shape.rank != RANKS_VIRTUAL && e->mem.master && e->o.dtype != NJ_F32;
}

struct updated engine_updated(const struct engine *e)
{
    const struct memory *m = &e->mem;
    if (!m->master || e->o.dtype == NJ_F32)
        return (struct updated){m->trained, e->o.dtype};
    return (struct updated){(char *)(engine_gathers(e) ? m->grad : m->master), NJ_F32};
}

bool engine_reads(const struct engine *e)
{
    return !e->o.given || e->shape.rank <= 0;
}

int engine_copy_results(struct engine *e, const struct losses *sums)
{
    struct pinned *box = e->mem.pinned;
    TRY(nj_copy(e->stream, box->state, e->mem.state, sizeof box->state));
    return nj_copy(e->stream, &box->sums, sums, sizeof box->sums);
}

int engine_read_back(struct engine *e)
{
    TRY(engine_copy_results(e, e->mem.sums));
    return nj_stream_sync(e->stream);
}
