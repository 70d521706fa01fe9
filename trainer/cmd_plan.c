/* SPDX-License-Identifier: Apache-2.0
 *
 * cmd_plan.c: `nojit plan`: the memory of a run, from the shapes alone.
 */
#include <string.h>

#include "error.h"
#include "folder.h"
#include "run.h"

static void print_json(const struct plan *p)
{
    printf("{\"total_bytes\": %zu, \"host_bytes\": %zu, \"regions\": {", p->total_bytes,
           p->host_bytes);
    for (int i = 0; i < p->count; i++)
        printf("%s\"%s\": %zu", i ? ", " : "", p->region[i].name, p->region[i].bytes);
    puts("}}");
}

int cmd_plan(const struct settings *s)
{
    struct run r;
    struct model_config student, teacher;
    struct plan plan;
    int err = need(s->student, "student", "plan");
    if (err)
        return err;
    memset(&r, 0, sizeof r);
    r.s = s;
    err = folder_resolve(s->student, r.student, sizeof r.student);
    if (!err && s->teacher != NULL)
        err = folder_resolve(s->teacher, r.teacher, sizeof r.teacher);
    if (!err)
        err = config_read(r.student, &student);
    if (!err && s->teacher != NULL)
        err = config_read(r.teacher, &teacher);
    if (!err)
        err = config_check_length(&student, (int)s->seq_len, r.student);
    if (err)
        return err;
    const bool float32 =
        s->dtype == DTYPE_F32 || (s->dtype == DTYPE_AUTO && s->device == (int)NJ_DEVICE_CPU);
    run_training_options(s, &r.options);
    r.options.steps = s->steps > 0 ? s->steps : 1;
    r.options.dtype = float32 ? NJ_F32 : NJ_LP;
    err = run_adapters(s, &r.options.lora);
    if (err)
        return err;
    err = plan_make(&student, s->teacher != NULL ? &teacher : NULL, &r.options, &plan);
    if (err)
        return err;
    if (s->json)
        print_json(&plan);
    else
        run_print_plan(&r, &plan);
    return 0;
}
