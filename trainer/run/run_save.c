/* SPDX-License-Identifier: Apache-2.0
 *
 * run_save.c: see run_save.h.
 */
#include "run/run_save.h"

#include "io/error.h"
#include "io/waits.h"
#include "run/run_begin.h"

static int save(struct run *r, int64_t step, bool best)
{
    struct data_state where;
    if (!group_leads(r->group)) {
        TRY(engine_collect_model(r->engine));
        return engine_collect_state(r->engine);
    }
    batches_tell(r->batches, &where);
    run_put_progress(r);
    return best ? checkpoints_save_best(&r->checkpoints, r->engine, step, &where)
                : checkpoints_save(&r->checkpoints, r->engine, step, &where);
}

int run_save(struct run *r, int64_t step, bool best)
{
    wait_begin("saving the state of step %lld", (long long)step);
    const int rc = save(r, step, best);
    wait_end();
    return rc;
}

int run_save_the_rest(struct run *r, int rc, int64_t step)
{
    char why[1024], not_saved[512] = "";
    /* Whether the checkpoint is missing, as rank 0 knows. */
    bool lacks = step != r->checkpoints.last;
    if (step == 0)
        return rc;
    snprintf(why, sizeof why, "%s", fail_text());
    int failed = group_share(r->group, &lacks, sizeof lacks);
    /* No checkpoint is removed for this one: a run that diverges may need an earlier one. */
    r->checkpoints.keep++;
    if (!failed && lacks)
        failed = run_save(r, step, false);
    if (failed && !group_leads(r->group))
        return failed;
    if (failed)
        snprintf(not_saved, sizeof not_saved, "%.511s", fail_text());
    failed = group_share(r->group, not_saved, sizeof not_saved);
    if (failed)
        return failed;
    if (not_saved[0] != '\0')
        return fail(rc, "%s; and no checkpoint of step %lld: %s", why, (long long)step, not_saved);
    return fail(rc, "%s; checkpoint-%lld was saved; %scontinue with --resume auto", why,
                (long long)step, engine_data_failed(r->engine) ? "repair the data and " : "");
}
