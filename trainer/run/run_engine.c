/* SPDX-License-Identifier: Apache-2.0
 *
 * run_engine.c: opens the engine of a run with the algorithms of matrix products that runs before it
 * chose: the same choices, the same bits.
 */
#include "run/run_engine.h"

#include "base/clock.h"
#include "base/plural.h"
#include "io/error.h"
#include "io/waits.h"
#include "run/gemm_cache.h"
#include "run/run_ranks.h"
#include "run/teacher_check.h"
#include "run/teacher_types.h"
#include "run/watchdog.h"

static void read_table(struct run *r, const char *path)
{
    if (path[0] != '\0' && nj_gemm_table_read(r->ctx, path) < 0)
        progress_say(&r->progress, "GEMM algorithms are chosen again: %s",
                     nj_context_error(r->ctx));
}

/* Read the tables. A resumed run uses the choices of its checkpoint before those of the user's file. */
static void read_tables(struct run *r, const char *path)
{
    char own[PATH_BYTES + 256];
    if (r->checkpoints.resume[0] != '\0') {
        snprintf(own, sizeof own, "%s/" ENGINE_GEMM_TABLE, r->checkpoints.resume);
        read_table(r, own);
    }
    read_table(r, path);
}

static void keep_table(struct run *r, const char *path)
{
    const long long timed = nj_context_device(r->ctx)->gemms_timed;
    const char *s = plural(timed);
    if (timed == 0 || r->s->dry_run)
        return;
    if (path[0] == '\0')
        progress_say(&r->progress,
                     "%lld GEMM%s timed; there is no cache folder for the choices, so "
                     "another run may choose others: name a file by --gemm-table",
                     timed, s);
    else if (nj_gemm_table_write(r->ctx, path) != 0)
        progress_say(&r->progress,
                     "%lld GEMM%s timed; the choices cannot be kept, so another run may "
                     "choose others: %s",
                     timed, s, nj_context_error(r->ctx));
    else
        progress_say(&r->progress, "%lld GEMM%s timed; choices kept in %s", timed, s, path);
}

/* Show the progress of loading; a short load prints no line. */
static void watch_load(void *user, double bytes, double total)
{
    struct run *r = user;
    struct progress *p = &r->progress;
    group_moved(r->group);
    if (bytes <= 0) {
        p->started = clock_seconds();
        wait_now("loading weights");
    }
    if (bytes >= total) {
        r->load_bytes += total;
        r->load_seconds += clock_seconds() - p->started;
    }
    if (clock_seconds() - p->started > 0.5)
        progress_bytes(p, bytes, total);
    if (bytes >= total) {
        wait_now("preparing the models");
        wait_detail("%s", "");
    }
}

static int share_gemms(void *run)
{
    return run_share_gemms(run);
}

static void watch_collection(void *run, bool begins)
{
    (begins ? deadline_collection : deadline_end)(run);
}

int run_open_engine(struct run *r)
{
    const bool leads = group_leads(r->group);
    char path[PATH_BYTES];
    r->options.loaded = watch_load;
    r->options.loaded_user = r;
    r->options.collecting = watch_collection;
    r->options.collecting_user = r;
    gemm_table_path(r->s->gemm_table, nj_context_device(r->ctx), path, sizeof path);
    if (leads)
        read_tables(r, path);
    int rc = leads ? 0 : run_share_gemms(r);
    if (run_rounds_teacher(r) && leads && r->options.steps > 0 && !r->s->dry_run)
        rc = run_check_teacher(r);
    r->options.prepared = leads ? share_gemms : NULL;
    r->options.prepared_user = r;
    deadline_load(r);
    if (rc == 0) {
        wait_begin("preparing GEMMs and memory");
        rc = engine_create(r->ctx, r->student, r->teacher[0] != '\0' ? r->teacher : NULL,
                           &r->options, run_say, r, &r->engine);
        wait_end();
    }
    deadline_end(r);
    progress_clear(&r->progress);
    if (rc == 0 && leads)
        keep_table(r, path);
    return rc;
}
