/* SPDX-License-Identifier: Apache-2.0
 *
 * run_start.c: see run_start.h.
 */
#include "run/run_start.h"

#include <string.h>

#include "base/plural.h"
#include "io/error.h"
#include "model/model_open.h"
#include "run/rollouts.h"
#include "run/run_inputs.h"
#include "run/run_ranks.h"
#include "teacher/teacher_cache.h"

int run_say_expanded(struct run *r)
{
    char types[160];
    const bool starts = r->checkpoints.resume[0] == '\0';
    TRY(source_quantized(r->student, types, sizeof types));
    if (starts && types[0] != '\0')
        progress_say(&r->progress,
                     "weights of %s (%s) are expanded to %s: training starts from them",
                     r->s->student, types, run_dtype_name(r));
    return 0;
}

/* Write how large the teacher is, or how many passages of it are in a cache; return out. */
static const char *teacher_text(const struct run *r, char *out, size_t bytes)
{
    if (r->cache)
        snprintf(out, bytes, "of %zu cached passage%s", cache_passages(r->cache),
                 plural((long long)cache_passages(r->cache)));
    else
        snprintf(out, bytes, "%.1fM parameters",
                 1e-6 * (double)config_parameters(engine_teacher(r->engine)));
    return out;
}

void run_say_start(struct run *r)
{
    char plan[32], divergence[32], ranks[128], teacher[64];
    const struct nj_device_info *d = nj_context_device(r->ctx);
    const struct train_options *o = &r->options;
    const struct objective_terms terms = train_terms(o);
    const long long per_step = (long long)o->batch_size * o->grad_accum * o->seq_len;
    progress_say(&r->progress, "device %s (%s), %s; %s in the plan", d->name, d->backend,
                 run_dtype_name(r),
                 bytes_text((double)engine_plan(r->engine)->total_bytes, plan, sizeof plan));
    if (*run_ranks_text(r, ranks, sizeof ranks) != '\0')
        progress_say(&r->progress, "%s", ranks);
    if (d->kernels_loaded > 0)
        progress_say(&r->progress,
                     "%u of %u kernel%s loaded; nothing is compiled or loaded from here on",
                     d->kernels_loaded, nj_kernel_count, plural(nj_kernel_count));
    progress_say(&r->progress,
                 "student %.1fM parameters; %lld token%s of text; %lld step%s of %lld token%s",
                 1e-6 * (double)config_parameters(engine_student(r->engine)),
                 (long long)data_tokens(r->data), plural(data_tokens(r->data)), (long long)o->steps,
                 plural(o->steps), per_step, plural(per_step));
    if (r->s->out != NULL && r->s->resume != NULL && strcmp(r->s->resume, "auto") == 0 &&
        r->checkpoints.resume[0] == '\0' && group_leads(r->group))
        progress_say(&r->progress, "nothing to continue in %s: the run begins at step 1",
                     r->s->out);
    if (*engine_student_fp8(r->engine) != '\0')
        progress_say(&r->progress, "FP8 GEMMs %s", engine_student_fp8(r->engine));
    run_say_data(r);
    if (rollouts_wanted(r->s))
        rollouts_say(r);
    if (o->lora.rank > 0)
        progress_say(&r->progress, "adapters of rank %d: %.2fM parameters are trained, %s",
                     o->lora.rank, 1e-6 * (double)engine_trained_parameters(r->engine),
                     o->adapter_dir != NULL ? o->adapter_dir : "new");
    if (train_balance(o, engine_student(r->engine)) > 0)
        progress_say(&r->progress, "experts are balanced: %.3g x their balance loss is added",
                     (double)train_balance(o, engine_student(r->engine)));
    if (r->teacher[0] != '\0')
        progress_say(&r->progress, "teacher %s; loss = %.3g CE + %.3g x %.3g^2 %s",
                     teacher_text(r, teacher, sizeof teacher), 1 - o->kd_ratio, o->kd_ratio,
                     o->temperature,
                     objectives[o->objective].text(&terms, divergence, sizeof divergence));
}
