/* SPDX-License-Identifier: Apache-2.0
 *
 * run_begin.c: the beginning of a run: at step 0, or at a checkpoint that fits its options.
 */
#include "run/run_begin.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/plural.h"
#include "io/error.h"
#include "io/model_folder.h"
#include "options/options.h"
#include "run/rollouts.h"
#include "run/run_ranks.h"
#include "run/teacher_types.h"

static void add(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t bytes, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list ap;
    va_start(ap, format);
    vsnprintf(text + used, bytes - used, format, ap);
    va_end(ap);
}

/* ---- settings.txt: settings that a resumed run must repeat ---- */

/* Write the weights of the data sources, "0.7 0.3", or "none". */
static void weights_text(const struct run *r, char *out, size_t bytes)
{
    const struct data *d = r->data;
    struct data_source s;
    size_t used = (size_t)snprintf(out, bytes, "%s", data_sources(d) > 0 ? "" : "none");
    for (size_t i = 0; i < data_sources(d) && used < bytes; i++) {
        data_source(d, i, &s);
        used += (size_t)snprintf(out + used, bytes - used, "%s%.9g", i ? " " : "", s.weight);
    }
}

static void teacher_dtype_text(const struct run *r, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s", run_teacher_dtype(r, "as dtype"));
}

static void dtype_text(const struct run *r, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s", r->options.dtype == NJ_F32 ? "float32" : "16-bit");
}

/* Write the packing that was chosen, not the option, so that a run of an earlier nojit, which had another default, can
 * be continued. */
static void packing_text(const struct run *r, char *out, size_t bytes)
{
    char buffer[32];
    snprintf(out, bytes, "%s",
             settings_choice("packing", data_packing(r->data), buffer, sizeof buffer));
}

static void fields_text(const struct run *r, char *out, size_t bytes)
{
    size_t used = 0;
    *out = '\0';
    for (size_t i = 0; i < r->s->fields.count && used < bytes; i++)
        used +=
            (size_t)snprintf(out + used, bytes - used, "%s%s", i ? "," : "", r->s->fields.path[i]);
}

static void day_text(const struct run *r, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s", r->day);
}

/* Options whose value in settings.txt comes from the run, not from the command line. */
static const struct {
    const char *name;
    void (*text)(const struct run *r, char *out, size_t bytes);
} decided[] = {
    {"data-weights", weights_text}, {"dtype", dtype_text},   {"teacher-dtype", teacher_dtype_text},
    {"packing", packing_text},      {"fields", fields_text}, {"template-date", day_text},
};

/* Add a line "name value" for each option that a resumed run treats in this way. */
static void add_options(const struct run *r, enum option_resume how, char *out, size_t bytes)
{
    const int digits = how == RESUME_SAID ? 7 : 9; /* enough digits to display, or to be exact */
    char buffer[SETTINGS_BYTES / 2];
    for (const struct option *o = options; o->name != NULL; o++) {
        if (!(o->commands & CMD_DISTILL) || o->resume != how)
            continue;
        const char *text = option_text(o, r->s, &r->options, digits, buffer, sizeof buffer);
        for (size_t i = 0; i < sizeof decided / sizeof *decided; i++)
            if (strcmp(decided[i].name, o->name) == 0) {
                decided[i].text(r, buffer, sizeof buffer);
                text = buffer;
            }
        add(out, bytes, "%s %s\n", o->name, text);
    }
}

/* Write the settings on which, besides the saved state, all later steps depend. */
static void put_settings(const struct run *r, char *out, size_t bytes)
{
    const bool teacher = r->teacher[0] != '\0';
    snprintf(out, bytes, "command %s\nteacher %016llx\ndata %016llx\nvocab %d\n",
             teacher ? "distill" : "train",
             teacher ? (unsigned long long)engine_teacher_hash(r->engine) : 0,
             (unsigned long long)data_hash(r->data), r->vocab);
    add_options(r, RESUME_SAME, out, bytes);
    if (!r->rollouts.prompts)
        return;
    add(out, bytes, "prompts %016llx\n", (unsigned long long)prompts_hash(r->rollouts.prompts));
    add_options(r, RESUME_ROLLOUTS, out, bytes);
}

/* Complete the error of a checkpoint that cannot be used, by naming another one. The run does not fall back on that
 * by itself, since the newer one may matter to the user. If options or program differ, another checkpoint would not
 * help. */
static int refuse_checkpoint(const struct run *r, int rc)
{
    if (rc == NJ_E_ARG || rc == NJ_E_UNSUPPORTED)
        return rc;
    const long long other = (long long)checkpoints_other(&r->checkpoints);
    if (other > 0)
        return fail(rc, "%s; another one is --resume %s/checkpoint-%lld", fail_text(), r->s->out,
                    other);
    return fail(rc, "%s; --out holds none, so start again in another folder", fail_text());
}

/* ---- progress.txt: values with which a run continues besides its state, and settings that it may change ---- */

void run_put_progress(struct run *r)
{
    const struct best *best = &r->metrics.best;
    char *out = r->checkpoints.progress, held[32] = "";
    const size_t bytes = sizeof r->checkpoints.progress;
    *out = '\0';
    add_options(r, RESUME_SAID, out, bytes);
    if (r->eval_data != NULL)
        snprintf(held, sizeof held, "%016llx", (unsigned long long)data_hash(r->eval_data));
    else /* a run without held-out data keeps the hash of the checkpoint */
        (void)checkpoints_progress(&r->checkpoints, "eval-data", held, sizeof held);
    if (held[0] != '\0')
        add(out, bytes, "eval-data %s\n", held);
    if (best->known)
        add(out, bytes, "best-step %lld\nbest-loss %.9g\nbest-worse %lld\n", (long long)best->step,
            (double)best->loss, (long long)best->worse);
}

/* Restore the best loss. A checkpoint of an earlier nojit lacks it; then it comes from the rows of the metrics. */
static void take_progress(struct run *r)
{
    const struct checkpoints *c = &r->checkpoints;
    struct best *best = &r->metrics.best;
    char step[32], loss[32], worse[32];
    if (c->found[0] == '\0' || !c->again)
        return;
    *best = (struct best){0};
    if (!checkpoints_progress(c, "best-step", step, sizeof step) ||
        !checkpoints_progress(c, "best-loss", loss, sizeof loss) ||
        !checkpoints_progress(c, "best-worse", worse, sizeof worse))
        return;
    *best = (struct best){.step = strtoll(step, NULL, 10),
                          .loss = strtof(loss, NULL),
                          .worse = strtoll(worse, NULL, 10),
                          .known = true};
}

/* Print the settings that changed since the checkpoint: "lr 0.02 -> 0.001, steps 20 -> 40". */
static void say_changes(struct run *r)
{
    char rates[1024] = "", line[2048] = "", was[64], *save = NULL;
    add_options(r, RESUME_SAID, rates, sizeof rates);
    for (char *now = strtok_r(rates, "\n", &save); now != NULL; now = strtok_r(NULL, "\n", &save)) {
        char *value = strchr(now, ' ');
        *value++ = '\0';
        if (checkpoints_progress(&r->checkpoints, now, was, sizeof was) && strcmp(was, value) != 0)
            add(line, sizeof line, "%s%s %s -> %s", line[0] != '\0' ? ", " : "", now, was, value);
    }
    if (line[0] != '\0')
        progress_say(&r->progress, "changed since the checkpoint: %s", line);
}

/* Refuse other held-out data: losses on two data sets cannot be compared, and a curve and `best` belong to one of
 * them. */
static int check_eval_data(struct run *r)
{
    char was[32], now[32];
    if (r->eval_data == NULL || !r->checkpoints.again ||
        !checkpoints_progress(&r->checkpoints, "eval-data", was, sizeof was))
        return 0;
    snprintf(now, sizeof now, "%016llx", (unsigned long long)data_hash(r->eval_data));
    if (strcmp(was, now) != 0)
        return fail(
            NJ_E_ARG,
            "--eval-data: %s was measured on other data (%s, now %s), and the losses cannot be "
            "compared; repeat the --eval-data of the run, or name another --out",
            r->checkpoints.resume, was, now);
    return 0;
}

/* Refuse to resume with --on-policy a run without it, or the reverse: settings.txt lacks the line of a run without
 * it. */
static int check_on_policy(const struct run *r)
{
    char was[32];
    if (rollouts_wanted(r->s) == checkpoints_setting(&r->checkpoints, "on-policy", was, sizeof was))
        return 0;
    return fail(NJ_E_ARG,
                "%s was made with on-policy %s, this run has on-policy %.9g; repeat the options of "
                "the run, or name another --out",
                r->checkpoints.resume, rollouts_wanted(r->s) ? "0" : was, r->s->on_policy);
}

static int check_checkpoint(struct run *r)
{
    int rc = r->checkpoints.resume[0] != '\0' ? check_on_policy(r) : 0;
    if (rc == 0)
        rc = checkpoints_check(&r->checkpoints);
    if (rc != 0)
        return refuse_checkpoint(r, rc);
    return check_eval_data(r);
}

/* Find out whether --resume auto continues a run that has ended. Such a run has its final model; its newest checkpoint
 * may be older. */
static int find_done(const struct run *r, struct ended_run *ended)
{
    if (r->s->resume == NULL || strcmp(r->s->resume, "auto") != 0 ||
        r->checkpoints.resume[0] == '\0')
        return 0;
    return checkpoints_done(&r->checkpoints, r->options.steps, r->s->early_stop_patience, ended);
}

static void say_done(struct run *r, const struct ended_run *ended)
{
    const long long steps = (long long)r->options.steps, last = (long long)ended->steps;
    if (ended->early)
        progress_say(
            &r->progress,
            "nothing left to do: the run stopped early, at step %lld of %lld; %s in %s; raise "
            "--early-stop-patience or --steps to continue",
            last, steps, run_result_name(r), r->s->out);
    else
        progress_say(&r->progress, "nothing left to do: step %lld of %lld is done; %s in %s", last,
                     steps, run_result_name(r), r->s->out);
}

static int go_on(struct run *r, int64_t *first)
{
    const char *dir = r->checkpoints.resume;
    struct data_state where;
    int64_t aside;
    int rc = engine_load_state(r->engine, dir, first, &where);
    if (rc != 0)
        return refuse_checkpoint(r, rc);
    batches_seek(r->batches, &where);
    rc = rollouts_load(r, dir, *first);
    if (rc != 0)
        return refuse_checkpoint(r, rc);
    if (!group_leads(r->group))
        return 0;
    if (*first > r->options.steps)
        return fail(NJ_E_ARG, "%s is at step %lld, past the %lld step%s asked for; raise --steps",
                    dir, (long long)*first, (long long)r->options.steps, plural(r->options.steps));
    TRY(checkpoints_go_on(&r->checkpoints, *first, &aside));
    progress_say(&r->progress, "continuing from %s (step %lld)", dir, (long long)*first);
    say_changes(r);
    if (aside > 0)
        progress_say(&r->progress, "checkpoints of later steps, set aside as *.old: %lld",
                     (long long)aside);
    return 0;
}

/* Open the files of metrics and samples. If --out holds this run already, rows up to the step where it continues are
 * kept, and the others are set aside. */
static int open_rows(struct run *r, int64_t first)
{
    char text[2 * PATH_BYTES + 200];
    struct rows_done done;
    const int64_t keep = !r->checkpoints.again ? ROWS_NEW : first > 0 ? first : ROWS_NONE;
    TRY(metrics_open(&r->metrics, r->s->out, keep, &done));
    if (*rows_text(r->metrics.path, &done, text, sizeof text) != '\0')
        progress_say(&r->progress, "%s", text);
    TRY(sample_log_open(&r->samples, r->s->out, keep, &done));
    if (*rows_text(r->samples.path, &done, text, sizeof text) != '\0')
        progress_say(&r->progress, "%s", text);
    return 0;
}

/* Facts about the beginning that rank 0 sends to the other ranks. */
struct beginning {
    bool done;
    char resume[sizeof(((struct checkpoints *)0)->resume)];
    struct best best;
};

static int open_records(struct run *r, int64_t first)
{
    r->metrics.echo = r->s->json;
    r->metrics.memory_bytes = engine_plan(r->engine)->total_bytes;
    const struct step_flops flops = engine_flops(r->engine);
    r->metrics.ideal = mfu_ideal(nj_context_device(r->ctx), r->options.dtype, &flops);
    TRY(open_rows(r, first));
    take_progress(r);
    if (r->s->report_to == REPORT_TENSORBOARD)
        TRY(events_open(&r->metrics.events, r->s->out, first > 0 ? first + 1 : 0));
    return 0;
}

static int share_beginning(struct run *r, struct beginning *b)
{
    const int rc = group_share(r->group, b, sizeof *b);
    if (rc != 0 || group_leads(r->group))
        return rc;
    snprintf(r->checkpoints.resume, sizeof r->checkpoints.resume, "%s", b->resume);
    return 0;
}

/* Compare with rank 0 the settings that must be equal on all ranks, in the form of settings.txt. Rank 0 writes
 * nothing before all ranks have found them equal. */
static int compare_ranks(struct run *r)
{
    char lines[SETTINGS_BYTES + 128];
    snprintf(lines, sizeof lines, "%sstudent %016llx\neval-data %016llx\nteacher-shard %s\n",
             r->checkpoints.settings, (unsigned long long)engine_student_hash(r->engine),
             r->eval_data != NULL ? (unsigned long long)data_hash(r->eval_data) : 0,
             r->s->teacher_shard ? "true" : "false");
    TRY(run_compare(r, lines));
    return group_wait(r->group);
}

int run_begin(struct run *r, int64_t *first)
{
    struct beginning b = {0};
    const bool leads = group_leads(r->group);
    struct ended_run ended = {0};
    put_settings(r, r->checkpoints.settings, sizeof r->checkpoints.settings);
    int rc = compare_ranks(r);
    if (rc == 0 && leads)
        rc = check_checkpoint(r);
    if (rc == 0 && leads)
        rc = find_done(r, &ended);
    b.done = ended.steps > 0;
    snprintf(b.resume, sizeof b.resume, "%s", r->checkpoints.resume);
    if (rc == 0)
        rc = share_beginning(r, &b);
    r->done = b.done;
    r->diverged = ended.diverged;
    if (rc == 0 && ended.steps > 0)
        say_done(r, &ended);
    if (rc != 0 || b.done)
        return rc;
    if (r->checkpoints.resume[0] != '\0')
        rc = go_on(r, first);
    /* Without room for the final model, the whole run would be lost. */
    if (rc == 0 && leads)
        rc = folder_check_model_space(r->s->out, engine_model_bytes(r->engine));
    if (rc == 0 && leads)
        rc = open_records(r, *first);
    return rc != 0 ? rc : group_share(r->group, &r->metrics.best, sizeof r->metrics.best);
}
