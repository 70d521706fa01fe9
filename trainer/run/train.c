/* SPDX-License-Identifier: Apache-2.0
 *
 * train.c: see train.h.
 */
#include "run/train.h"

#include <math.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/plural.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "io/waits.h"
#include "model/gguf_describe.h"
#include "model/gguf_ftype.h"
#include "model/model_open.h"
#include "record/run_files.h"
#include "run/batch_fit.h"
#include "run/cached_teacher.h"
#include "run/day.h"
#include "run/export.h"
#include "run/interrupts.h"
#include "run/receipt.h"
#include "run/rollouts.h"
#include "run/run.h"
#include "run/run_begin.h"
#include "run/run_engine.h"
#include "run/run_inputs.h"
#include "run/run_prompts.h"
#include "run/run_ranks.h"
#include "run/run_save.h"
#include "run/run_start.h"
#include "run/watchdog.h"
#include "text/gguf_tokenizer.h"

static int64_t steps_of_epochs(const struct run *r)
{
    const double per_step = (double)r->options.batch_size * r->options.grad_accum;
    const double steps =
        ceil(r->s->on_policy == 1 ? rollouts_steps(r, r->s->epochs)
                                  : r->s->epochs * (double)data_windows(r->data) / per_step);
    return steps < 1 ? 1 : (int64_t)steps;
}

/* Take the folder to write before anything that takes time, and before --log, which may lie in it. */
static int take_output(struct checkpoints *c, const struct settings *s)
{
    if (s->out == NULL)
        return 0;
    TRY(checkpoints_open(c, s->out, s->resume));
    if (!s->dry_run)
        return checkpoints_begin(c, s->resume);
    const int rc = folder_check_place(s->out);
    return rc != 0 ? fail(rc, "--out %s", fail_text()) : 0;
}

/* Refuse, before training, exports that would fail after it. */
static int check_exports(struct run *r)
{
    const struct path_list *types = &r->s->export_types;
    struct model_config c;
    for (size_t i = 0; i < types->count; i++)
        if (!gguf_ftype_find(types->path[i]))
            return fail(NJ_E_ARG, "--export %s: give f32, f16, bf16, q8_0, q6_k, q5_k_m or q4_k_m",
                        types->path[i]);
    if (types->count == 0)
        return 0;
    TRY(source_config(r->student, &c));
    TRY(gguf_check_model(&c, r->student));
    return gguf_check_tokenizer(&r->tokenizer, c.vocab_size);
}

static int open_tokenizer(struct run *r)
{
    TRY(run_open_tokenizer(r));
    /* fail now rather than when they are saved */
    TRY(source_check_side_files(r->student));
    return check_exports(r);
}

/* Open the sample log on rank 0, which alone writes samples and so alone has a decoder. */
static int open_samples(struct run *r)
{
    int rc = sample_log_prompts(&r->samples, r->s, &r->tokenizer, r->options.seq_len);
    if (rc != 0 || r->samples.count == 0)
        return rc;
    r->options.decode_rows = 1;
    return run_stops(r);
}

static int open_inputs(struct run *r, const char *command)
{
    if (run_reads(r))
        TRY(open_tokenizer(r));
    TRY(run_take_day(r));
    TRY(run_engine_options(r));
    TRY(run_open_cache(r));
    if (group_leads(r->group))
        TRY(open_samples(r));
    if (rollouts_wanted(r->s))
        TRY(rollouts_open(r));
    TRY(run_open_data(r, &r->s->data, false, &r->data, &r->batches));
    if (rollouts_wanted(r->s))
        TRY(rollouts_mix(r));
    if (r->s->batch_size == BATCH_AUTO)
        TRY(run_fit_batch(r));
    if (rollouts_wanted(r->s))
        TRY(rollouts_fit(r));
    if (r->s->eval_data.count > 0)
        TRY(run_open_data(r, &r->s->eval_data, true, &r->eval_data, &r->eval_batches));
    TRY(run_check_cache(r, false));
    TRY(run_find_turn_end(r));
    TRY(run_say_day(r));
    if (r->options.steps == 0)
        r->options.steps = steps_of_epochs(r);
    if (r->options.warmup_steps == 0)
        r->options.warmup_steps = schedule_warmup(r->s->warmup_ratio, r->options.steps);
    if (r->options.warmup_steps >= r->options.steps && r->options.warmup_steps > 0)
        return fail(NJ_E_ARG,
                    "--warmup-steps %lld: must be fewer than the %lld step%s of this %s run",
                    (long long)r->options.warmup_steps, (long long)r->options.steps,
                    plural(r->options.steps), command);
    return 0;
}

static int open_engine(struct run *r)
{
    r->options.stopping = interrupted;
    int rc = run_open_engine(r);
    if (rc != 0 || r->teacher[0] == '\0' || r->s->allow_self_distillation)
        return rc;
    if (engine_student_hash(r->engine) == engine_teacher_hash(r->engine))
        return fail(
            NJ_E_ARG,
            "teacher %s and student %s have the same weights, so there is nothing to learn; "
            "name another teacher, or add --allow-self-distillation",
            r->teacher, r->student);
    return 0;
}

/* Show the progress of an evaluation, and tell a user who interrupts it at once what happens, since it may take
 * long. */
static void watch_rows(void *run, int64_t rows, int64_t total)
{
    struct run *r = run;
    group_moved(r->group);
    if (interrupted() && !r->stop_said) {
        r->stop_said = true;
        progress_say(&r->progress, "interrupted: the run saves and stops when this evaluation is "
                                   "done; a second Ctrl-C ends it at once, without saving");
    }
    progress_rows(&r->progress, rows, total);
}

static int evaluate(struct run *r, int64_t step)
{
    if (r->eval_data == NULL)
        return 0;
    struct eval_result e;
    deadline_evaluation(r, step);
    wait_begin("measuring held-out text at step %lld", (long long)step);
    int rc = engine_eval(r->engine, r->eval_batches, &e);
    wait_end();
    deadline_end(r);
    if (rc == 0)
        rc = metrics_eval(&r->metrics, step, &e);
    if (rc != 0)
        return rc;
    char perplexity[32], kd[32] = "";
    snprintf(perplexity, sizeof perplexity, e.perplexity < 1e6 ? "%.2f" : "%.3g", e.perplexity);
    if (r->teacher[0] != '\0')
        snprintf(kd, sizeof kd, "  kd %.4f", e.kd_loss);
    progress_say(&r->progress, "held out at step %lld: ce %.4f  perplexity %s%s", (long long)step,
                 e.ce_loss, perplexity, kd);
    return 0;
}

static int write_samples(struct run *r, int64_t step)
{
    const struct sampling how = {
        .engine = r->engine, .tokenizer = &r->tokenizer, .ends = &r->ends, .how = run_sampling(r)};
    if ((step == 0 && r->eval_data == NULL) || !group_leads(r->group))
        return 0;
    return sample_log_write(&r->samples, &how, step, &r->progress);
}

struct outcome {
    int64_t step; /* last step done */
    bool stopped; /* whether it was interrupted */
    bool settled; /* whether the held-out loss no longer falls */
    /* After an error: whether the weights after `step` cannot be saved, or saving them has failed. */
    bool lost;
};

/* Return whether an error occurs on all ranks alike, or, in a run of one, is not a fault of the device. */
static bool is_common(const struct run *r, int rc)
{
    return engine_data_failed(r->engine) || (r->group->place.size == 1 && rc != NJ_E_DEVICE);
}

/* Measure the held-out loss, write samples, and keep the model if it is the best. The model of step 0 is --student,
 * which exists already. */
static int measure(struct run *r, int64_t step, struct outcome *o)
{
    const struct best *best = &r->metrics.best;
    const double began = clock_seconds();
    int rc = evaluate(r, step);
    wait_begin("writing samples at step %lld", (long long)step);
    if (rc == 0)
        rc = write_samples(r, step);
    wait_end();
    o->lost = rc != 0 && !is_common(r, rc);
    if (rc == 0 && r->s->keep_best && step > 0 && best->known && best->step == step) {
        o->lost = true;
        rc = run_save(r, step, true);
    }
    o->settled = metrics_settled(&r->metrics, r->s->early_stop_patience);
    progress_measured(&r->progress, step, clock_seconds() - began);
    return rc;
}

static void count_step(struct run *r, const struct step_result *result)
{
    if (r->empty_batches == 0 && result->empty > 0)
        progress_say(&r->progress,
                     "a micro-batch has no target, since the data's masks leave none: such are "
                     "skipped, and counted in the receipt (empty_micro_batches)");
    r->empty_batches += result->empty;
    r->skipped_updates = result->skipped_updates;
    r->step_seconds = 1e-3 * result->step_ms;
    r->trained_seconds += r->step_seconds;
    r->trained_tokens += result->tokens;
    if (result->passed_over)
        return;
    if (r->trained_targets == 0)
        r->first_loss = result->loss;
    r->last_loss = result->loss;
    trend_add(&r->trend, rollouts_wanted(r->s) ? result->forward_kl : result->ce_loss);
    r->trained_targets += result->valid_tokens;
}

/* A step is under way after which an interrupt saves a checkpoint; the thread that reports waits reads this. */
static atomic_bool in_step;

/* Return a message, once, for a user who has interrupted a step, since the step may take long; NULL: there is none. */
static const char *interrupt_news(void)
{
    static bool told;
    if (told || !interrupted() || !atomic_load(&in_step))
        return NULL;
    told = true;
    return "stopping after this step; a checkpoint is saved then (press Ctrl-C again to end now)";
}

static int take_step(struct run *r, int64_t step, struct step_result *result, struct outcome *o)
{
    deadline_step(r, step);
    wait_begin("step %lld", (long long)step);
    wait_usual(3 * r->step_seconds);
    atomic_store(&in_step, r->group->place.size == 1 && step < r->options.steps);
    int rc = rollouts_wanted(r->s) ? rollouts_step(r, step) : 0;
    o->lost = rc != 0 && !is_common(r, rc);
    if (rc == 0) {
        rc = engine_step(r->engine, r->batches, result);
        o->lost = rc != 0 && !engine_data_failed(r->engine) && !result->intact;
    }
    atomic_store(&in_step, false);
    wait_end();
    deadline_end(r);
    if (rc != 0 && o->lost && result->nonfinite[0] != '\0' && r->checkpoints.last > 0)
        return fail(rc, "%s; checkpoint-%lld is good", fail_text(), (long long)r->checkpoints.last);
    return rc;
}

/* Do what is due after a step: measure, stop, save. */
static int after_step(struct run *r, int64_t step, bool stopping, struct outcome *o)
{
    const struct settings *s = r->s;
    const bool last = step == r->options.steps;
    if ((s->eval_every > 0 && step % s->eval_every == 0) || last)
        TRY(measure(r, step, o));
    /* Ranks stop after the same step, whichever rank got the signal; this takes one step more than in a run of one. */
    o->stopped = (r->comm != NULL ? stopping : interrupted()) && !last && !o->settled;
    if (!o->stopped && (s->save_every == 0 || step % s->save_every != 0))
        return 0;
    o->lost = true;
    return run_save(r, step, false);
}

/* Run one step, write its row and line, and do everything that is due after it: evaluation, samples, checkpoint. */
static int one_step(struct run *r, int64_t step, struct outcome *o)
{
    struct step_result result = {0};
    TRY(take_step(r, step, &result, o));
    o->step = step;
    const int rc =
        metrics_step(&r->metrics, step, &result, rollouts_wanted(r->s) ? &r->rollouts.stats : NULL);
    o->lost = r->group->place.size > 1;
    if (rc != 0)
        return rc;
    progress_step(&r->progress, step, &result);
    count_step(r, &result);
    return after_step(r, step, result.stopping, o);
}

static void prepare_progress(struct run *r, int64_t first)
{
    struct progress *p = &r->progress;
    p->first_step = first;
    p->steps = r->options.steps;
    p->every = r->s->log_every;
    p->measure_every = r->s->eval_every;
    p->teacher = r->teacher[0] != '\0';
    p->answers = rollouts_wanted(r->s) ? &r->rollouts.stats : NULL;
    p->ideal_seconds = r->metrics.ideal.student + r->metrics.ideal.teacher;
    p->memory_bytes = (double)r->metrics.memory_bytes;
}

static int loop(struct run *r, int64_t first, struct outcome *o)
{
    prepare_progress(r, first);
    wait_end();
    trend_begin(&r->trend, r->options.steps - first);
    engine_watch(r->engine, watch_rows, r);
    *o = (struct outcome){.step = first};
    int rc = first == 0 ? measure(r, 0, o) : 0;
    r->progress.started = clock_seconds();
    for (int64_t step = first + 1;
         step <= r->options.steps && rc == 0 && !o->stopped && !o->settled; step++)
        rc = one_step(r, step, o);
    if (rc == 0 && first == 0 && r->trained_targets == 0 && !o->stopped)
        return fail(NJ_E_FORMAT,
                    "no position of the data has a target in any of %lld step%s; check "
                    "its masks, or give longer sequences by --seq-len",
                    (long long)o->step, plural(o->step));
    return rc != 0 && !o->lost ? run_save_the_rest(r, rc, o->step) : rc;
}

static int write_merged(struct run *r)
{
    size_t merged;
    TRY(checkpoints_merge(&r->checkpoints, r->student, &merged));
    progress_say(&r->progress, "%zu adapter%s merged into the model: %s/merged", merged,
                 plural((long long)merged), r->s->out);
    return 0;
}

/* Export the model in OUT, replacing earlier exports. */
static int write_exports(struct run *r)
{
    const struct path_list *types = &r->s->export_types;
    const bool adapters = r->options.lora.rank > 0, unmerged = adapters && !r->s->merge;
    const char *out = r->s->out;
    char to[PATH_BYTES + 64], merged[PATH_BYTES];
    struct export_source x;
    snprintf(merged, sizeof merged, "%s/merged", out);
    int rc = export_open(&x,
                         unmerged   ? r->student
                         : adapters ? merged
                                    : out,
                         out, unmerged ? out : NULL, merged);
    if (rc != 0)
        return rc;
    x.tokenizer = (enum tokenizer_choice)r->s->tokenizer;
    for (size_t i = 0; i < types->count && rc == 0; i++) {
        snprintf(to, sizeof to, "%s/" OWN_EXPORT, out, types->path[i]);
        rc = export_file(&x, &r->progress, gguf_ftype_find(types->path[i]), to);
    }
    export_close(&x);
    return rc;
}

/* Write the model, then its exports. */
static int write_models(struct run *r)
{
    if (!group_leads(r->group))
        return engine_collect_model(r->engine);
    int rc = checkpoints_finish(&r->checkpoints, r->engine);
    if (rc == 0 && r->s->merge)
        rc = write_merged(r);
    return rc != 0 || r->s->export_types.count == 0 ? rc : write_exports(r);
}

/* Return the error of a run that has diverged; its model is written nevertheless. */
static int refuse_diverged(const struct run *r)
{
    const struct trend *t = &r->trend;
    if (r->done)
        return fail(NJ_DIVERGED,
                    "this run has diverged, as %s/receipt.json says; lower --lr, or "
                    "add --warmup-steps, and start again in another folder",
                    r->s->out);
    return fail(NJ_DIVERGED,
                "this run has diverged: the %s of its last steps is %.4f, after %.4f; lower --lr, "
                "or add --warmup-steps, and start again in another folder%s%s%s",
                rollouts_wanted(r->s) ? "divergence" : "cross-entropy", t->end, t->lowest,
                r->metrics.best.step > 0 && r->s->keep_best ? "; " : "",
                r->metrics.best.step > 0 && r->s->keep_best ? r->s->out : "",
                r->metrics.best.step > 0 && r->s->keep_best ? "/best has the lowest held-out loss"
                                                            : "");
}

static int finish(struct run *r, const struct command_info *c, const struct outcome *o)
{
    char took[32];
    r->diverged = trend_diverged(&r->trend, r->vocab);
    duration_text(clock_seconds() - r->progress.started, took, sizeof took);
    wait_begin("writing the %s", run_result_name(r));
    int rc = o->stopped ? 0 : write_models(r);
    wait_end();
    if (rc == 0 && group_leads(r->group))
        rc = receipt_write(r->s->out, c, r, o->step);
    if (rc == 0)
        rc = metrics_close(&r->metrics);
    if (rc != 0)
        return rc;
    if (o->stopped) {
        progress_say(&r->progress,
                     "interrupted: checkpoint-%lld is saved; continue with --resume auto",
                     (long long)o->step);
        return fail(NJ_INTERRUPTED, "interrupted after step %lld", (long long)o->step);
    }
    if (o->settled)
        progress_say(&r->progress,
                     "ended at step %lld: the held-out loss has not fallen below %.4f, of step "
                     "%lld, in %lld measurement%s",
                     (long long)o->step, (double)r->metrics.best.loss,
                     (long long)r->metrics.best.step, (long long)r->metrics.best.worse,
                     plural(r->metrics.best.worse));
    const int64_t done = o->step - r->progress.first_step;
    if (done == 0) {
        progress_say(&r->progress, "nothing left to do: step %lld of %lld is done; %s in %s",
                     (long long)o->step, (long long)r->options.steps, run_result_name(r),
                     r->s->out);
        return 0;
    }
    if (r->empty_batches > 0)
        progress_say(&r->progress,
                     "micro-batches without a target, which were skipped: %lld of %lld",
                     (long long)r->empty_batches, (long long)(done * r->options.grad_accum));
    rollouts_say_all(r);
    progress_say(&r->progress, "loss %.4f -> %.4f over %lld step%s in %s; %s in %s", r->first_loss,
                 r->last_loss, (long long)done, plural(done), took, run_result_name(r), r->s->out);
    return 0;
}

/* Train from step 0 or a checkpoint, and write the model. */
static int run(struct run *r, const struct command_info *c)
{
    struct outcome o;
    int64_t first = 0;
    interrupts_catch(r->group->supervisor >= 0);
    waits_watch(interrupt_news);
    int rc = run_begin(r, &first);
    if (rc != 0 || r->done)
        return rc;
    TRY(loop(r, first, &o));
    return finish(r, c, &o);
}

static int open_run(struct run *r, const struct command_info *c)
{
    TRY(open_inputs(r, c->name));
    TRY(open_engine(r));
    if (group_leads(r->group))
        TRY(run_say_expanded(r));
    run_say_start(r);
    if (r->s->dry_run)
        run_print_plan(r, engine_plan(r->engine));
    return 0;
}

/* Meet the other ranks at the end; the error of one that failed counts first. */
static int finish_ranks(struct run *r, int rc)
{
    char text[1024];
    snprintf(text, sizeof text, "%s", fail_text());
    const int other = group_finish(r->group);
    return other ? other : rc != 0 ? fail(rc, "%s", text) : 0;
}

/* End this process if it is one of several. */
static void leave_group(struct run *r, int rc)
{
    if (r->group->place.size == 1)
        return;
    progress_close(&r->progress);
    group_fail(r->group, rc);
}

static void leave_output(void *checkpoints)
{
    checkpoints_close(checkpoints);
}

/* Train as one rank, which may be the only one. */
static int train_rank(const struct settings *s, const struct command_info *c, struct group *g)
{
    struct run r;
    struct checkpoints checkpoints = {.keep = s->keep};
    g->leave = leave_output;
    g->user = &checkpoints;
    int rc = group_leads(g) ? take_output(&checkpoints, s) : 0;
    if (rc != 0) {
        checkpoints_close(&checkpoints);
        group_fail(g, rc);
        return rc;
    }
    if (!s->dry_run)
        pipes_may_close();
    wait_begin("starting"); /* this lasts until the first step */
    rc = run_open(&r, s, g, false);
    r.checkpoints = checkpoints;
    checkpoints_listen(&r.checkpoints, run_say, &r);
    r.checkpoints.add = rollouts_save;
    r.checkpoints.add_user = &r;
    if (rc == 0)
        rc = open_run(&r, c);
    if (rc == 0 && !s->dry_run)
        rc = run(&r, c);
    if (rc == 0)
        rc = progress_check(&r.progress);
    if (rc == 0 || rc == NJ_INTERRUPTED)
        rc = finish_ranks(&r, rc);
    if (rc == 0 && r.diverged && group_leads(g))
        rc = refuse_diverged(&r);
    if (rc != 0 && rc != NJ_INTERRUPTED)
        leave_group(&r, rc);
    run_close(&r);
    return rc;
}

int train_run(const struct settings *s, const struct command_info *c)
{
    struct group g;
    int gpus, rc = run_gpus(s, &gpus);
    if (rc == 0)
        rc = group_find(&g, c->name, gpus);
    return rc != 0 || g.parent ? rc : train_rank(s, c, &g);
}
