/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_batch.c: whether a plan fits, and the largest batch whose plan does.
 */
#include "base/checked.h"
#include "io/error.h"
#include "state/plan.h"

#include <string.h>

static bool arrays_fit(const struct plan *p, const struct train_options *o)
{
    return o->array_bytes == 0 || p->array_bytes <= o->array_bytes;
}

bool plan_fits(const struct plan *p, const struct train_options *o, size_t budget)
{
    return p->total_bytes <= budget && arrays_fit(p, o);
}

int plan_check_array(const struct plan *p, const struct train_options *o)
{
    const double mib = 1.0 / (1 << 20);
    if (arrays_fit(p, o))
        return 0;
    return fail(NJ_E_NOMEM,
                "%s has an array of %.1f MiB, and this driver gives at most %.1f MiB at a time; "
                "use a smaller model, batch or sequence, or --device cpu",
                p->array_in, (double)p->array_bytes * mib, (double)o->array_bytes * mib);
}

/* Logits and losses go in chunks of rows whose size follows the batch up and down, and so does a teacher's pass; the
 * rest only grows. */
static size_t without_chunks(const struct plan *p)
{
    size_t bytes = 0;
    for (int i = 0; i < p->count; i++) {
        const struct plan_region *r = &p->region[i];
        if (r->place == PLAN_DEVICE && strncmp(r->name, "head.", 5) != 0 &&
            strcmp(r->name, "teacher.logits") != 0 && strcmp(r->name, "teacher.hidden") != 0 &&
            strcmp(r->name, "teacher.pass") != 0)
            bytes = size_add(bytes, r->bytes);
    }
    return bytes;
}

int plan_largest_batch(const struct model_config *student, const struct model_config *teacher,
                       const struct train_options *o, size_t budget, int most, int *out)
{
    struct train_options tried = *o;
    struct plan p;
    *out = 0;
    for (tried.batch_size = 1; tried.batch_size <= most; tried.batch_size++) {
        if ((int64_t)tried.batch_size * o->seq_len > PLAN_ROWS_MOST)
            break;
        const int err = plan_make(student, teacher, &tried, &p);
        if (err)
            return err;
        if (plan_fits(&p, o, budget))
            *out = tried.batch_size;
        else if (without_chunks(&p) > budget)
            break;
    }
    return 0;
}
