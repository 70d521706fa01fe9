/* SPDX-License-Identifier: Apache-2.0
 *
 * export.c: see export.h.
 */
#include "run/export.h"

#include "base/clock.h"
#include "io/error.h"
#include "model/gguf_export.h"
#include "weights/merge.h"

#include <stdio.h>

int export_open(struct export_source *x, const char *model, const char *name, const char *adapter,
                const char *beside)
{
    size_t adapters;
    *x = (struct export_source){.name = name, .is_merged = adapter != NULL};
    if (!x->is_merged) {
        if (snprintf(x->from, sizeof x->from, "%s", model) >= (int)sizeof x->from)
            return fail(NJ_E_IO, "%.80s...: the path is too long; use a shorter one", model);
        return 0;
    }
    TRY(folder_begin(&x->merged, beside));
    snprintf(x->from, sizeof x->from, "%s/model", x->merged.temp);
    const int rc = merge_adapters(model, adapter, x->from, &adapters);
    if (rc != 0)
        export_close(x);
    return rc;
}

static void advance(void *user, double bytes, double total)
{
    progress_bytes(user, bytes, total);
}

int export_file(const struct export_source *x, struct progress *p, const struct gguf_ftype *m,
                const char *to)
{
    const struct export_options o = {
        .ftype = m, .name = x->name, .tokenizer = x->tokenizer, .written = advance, .user = p};
    char took[32];
    double bytes;
    p->started = clock_seconds();
    TRY(gguf_export(x->from, to, &o, &bytes));
    progress_say(p, "%s: %.1f MB of weights as %s in %s", to, 1e-6 * bytes, m->name,
                 duration_text(clock_seconds() - p->started, took, sizeof took));
    return 0;
}

void export_close(struct export_source *x)
{
    if (x->is_merged)
        folder_abort(&x->merged);
}
