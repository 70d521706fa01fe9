/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_merge.c: `nojit merge`: a model with trained adapters as a model of its own.
 */
#include "base/plural.h"
#include "cli/commands.h"
#include "formats/model_path.h"
#include "io/error.h"
#include "run/run.h"
#include "weights/merge.h"

int cmd_merge(const struct settings *s)
{
    char base[PATH_BYTES];
    size_t merged = 0;
    const struct needed needed[] = {{"model", s->student != NULL},
                                    {"adapter", s->adapter != NULL},
                                    {"out", s->out != NULL},
                                    {NULL}};
    TRY(run_needs("merge", needed));
    TRY(model_resolve(s->student, base, sizeof base));
    TRY(merge_adapters(base, s->adapter, s->out, &merged));
    printf("%s: %s with %zu adapter%s of %s in its weights\n", s->out, s->student, merged,
           plural((long long)merged), s->adapter);
    return 0;
}
