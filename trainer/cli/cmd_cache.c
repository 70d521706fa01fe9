/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_cache.c: `nojit cache`: the hidden states of a teacher, computed once for all runs that learn from them.
 */
#include "cli/commands.h"
#include "io/error.h"
#include "run/day.h"
#include "run/make_cache.h"
#include "run/run_inputs.h"

int cmd_cache(const struct settings *s)
{
    struct group alone = GROUP_ALONE;
    struct cache_part part;
    struct run r;
    const struct needed needed[] = {{"teacher", s->student != NULL},
                                    {"data", s->data.count > 0 || s->eval_data.count > 0},
                                    {"out", s->out != NULL || s->dry_run},
                                    {NULL}};
    TRY(run_needs("cache", needed));
    TRY(cache_part_read(s->part, &part));
    TRY(run_check_output(s));
    int rc = run_open(&r, s, &alone, false);
    if (rc == 0)
        rc = day_use(s->template_date, r.day);
    if (rc == 0)
        rc = make_cache(&r, &part);
    if (rc == 0)
        rc = progress_check(&r.progress);
    run_close(&r);
    return rc;
}
