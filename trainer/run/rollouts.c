/* SPDX-License-Identifier: Apache-2.0
 *
 * rollouts.c: see rollouts.h. Which rows of a step are answers follows from seed and step, which prompt comes next from
 * how many answers all steps before have: so a resumed run needs no state of its own, but where steps use answers
 * again.
 */
#include "run/rollouts.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/integers.h"
#include "base/plural.h"
#include "batch/answers.h"
#include "io/error.h"
#include "io/random.h"
#include "io/waits.h"
#include "model/model_open.h"
#include "run/batch_fit.h"
#include "run/run_prompts.h"

/* Most answers at a time if --rollout-batch does not give a number. */
enum { ROWS_AUTO = 512 };
/* Number of answers that are recorded in a step that records any. */
enum { ANSWERS_SHOWN = 3 };

bool rollouts_wanted(const struct settings *s)
{
    return s->on_policy > 0;
}

static int check_unwanted(const struct settings *s)
{
    if (s->prompts.count > 0)
        return fail(NJ_E_ARG, "--prompts needs --on-policy, the share of sequences that are "
                              "answers to them");
    if (s->teacher_prompt || s->writer != 0 || s->horizon > 0)
        return fail(NJ_E_ARG, "--%s needs --on-policy and --prompts",
                    s->teacher_prompt ? "teacher-prompt"
                    : s->writer != 0  ? "writer"
                                      : "horizon");
    return 0;
}

static int refuse_ranks(void)
{
    return fail(NJ_E_ARG, "--on-policy runs on one GPU; leave --gpus and the launcher out");
}

int rollouts_check(const struct settings *s)
{
    if (!rollouts_wanted(s))
        return check_unwanted(s);
    if (s->prompts.count == 0)
        return fail(NJ_E_ARG, "--on-policy needs --prompts to answer");
    if (s->on_policy < 1 && s->data.count == 0)
        return fail(NJ_E_ARG, "--on-policy %g needs --data for the other sequences", s->on_policy);
    if (s->writer != 0 && s->sample_prompts.count > 0)
        return fail(NJ_E_ARG, "--sample-prompt needs the student's decoder, which --writer teacher "
                              "does not allocate; leave --sample-prompt out");
    return rollouts_check_plan(s);
}

int rollouts_check_plan(const struct settings *s)
{
    if (!rollouts_wanted(s))
        return check_unwanted(s);
    if (!s->teacher)
        return fail(NJ_E_ARG, "--on-policy needs --teacher, which the student learns from");
    if (s->gpus != 1)
        return refuse_ranks();
    if (settings_given(s, "kd-ratio") && s->kd_ratio != 1)
        return fail(NJ_E_ARG,
                    "--kd-ratio %g: with --on-policy the loss is the divergence alone, of text of "
                    "--data too, as with 1; leave --kd-ratio out",
                    s->kd_ratio);
    if (s->horizon > s->max_new)
        return fail(NJ_E_ARG, "--horizon %lld is more than --max-new %lld; lower it",
                    (long long)s->horizon, (long long)s->max_new);
    return 0;
}

/* Return the number of rows of a step. */
static int64_t rows_of(const struct run *r)
{
    return (int64_t)r->options.batch_size * r->options.grad_accum;
}

/* Return whether row `row` of step `step` (from 1 on) is an answer; this is the same for all steps that use the same
 * answers. */
static bool is_own(const struct run *r, int64_t step, int64_t row)
{
    const uint64_t turn = (uint64_t)((step - 1) / r->s->reuse);
    const uint64_t z =
        random_mix(random_mix(random_mix((uint64_t)r->s->seed) + turn) + (uint64_t)row);
    return (double)(z >> 11) * 0x1p-53 < r->s->on_policy;
}

static int64_t own_rows(const struct run *r, int64_t step)
{
    int64_t count = 0;
    for (int64_t row = 0; row < rows_of(r); row++)
        count += is_own(r, step, row);
    return count;
}

/* Return the number of answers in the steps before this one; steps come in order. */
static int64_t answers_before(struct run *r, int64_t step)
{
    struct rollouts *o = &r->rollouts;
    for (; o->counted < step - 1; o->counted += r->s->reuse)
        o->before += own_rows(r, o->counted + 1) * o->each;
    return o->before;
}

/* Find the most tokens that a prompt may have. */
static int find_room(const struct run *r, int *room)
{
    *room = r->options.seq_len - (int)r->s->max_new;
    if (*room >= 1)
        return 0;
    return fail(NJ_E_ARG,
                "--max-new %lld leaves no room for a prompt in --seq-len %d; lower the one or "
                "raise the other",
                (long long)r->s->max_new, r->options.seq_len);
}

static int open_prompts(struct run *r, int room)
{
    struct prompts_options o = {
        .longest = room,
        .teacher_longest = room,
        .teacher_context = r->s->teacher_prompt,
        .vocab_size = r->vocab,
        .seed = (uint64_t)r->s->seed,
    };
    int rc = run_open_prompts(r, &o, &r->rollouts.prompts);
    const long long dropped = rc != 0 ? 0 : (long long)prompts_dropped(r->rollouts.prompts);
    if (dropped > 0)
        progress_say(&r->progress,
                     "%lld prompt%s longer than the %d tokens that --seq-len and --max-new leave: "
                     "left out",
                     dropped, plural(dropped), room);
    return rc;
}

/* Return the positions that samples need, which the same decoder writes. */
static int longest_sample(const struct run *r)
{
    const struct sample_log *l = &r->samples;
    int64_t longest = 0;
    for (size_t i = 0; i < l->count; i++) {
        const int64_t text = (int64_t)l->prompt[i].count + l->tokens;
        longest = text > longest ? text : longest;
    }
    return (int)(longest < l->longest ? longest : l->longest);
}

/* Set what follows from the longest prompts of student and teacher. */
static void take_lengths(struct run *r, int prompt, int teacher, bool has_context)
{
    const int most = (int)r->s->max_new;
    r->rollouts.longest = prompt;
    r->rollouts.each = (r->options.seq_len + 1) / (int_max(prompt, teacher) + most);
    r->options.answers = 1;
    r->options.teacher_has_context = has_context;
    r->options.decode_positions =
        int_max((r->options.teacher_writes ? teacher : prompt) + most, longest_sample(r));
    r->options.decode_rows = 1;
}

static int read_prompts(struct run *r)
{
    int room;
    TRY(find_room(r, &room));
    TRY(open_prompts(r, room));
    const struct prompts *p = r->rollouts.prompts;
    take_lengths(r, prompts_longest(p), prompts_teacher_longest(p), prompts_teacher_has_context(p));
    return 0;
}

int rollouts_open(struct run *r)
{
    if (r->group->place.size > 1)
        return refuse_ranks();
    const int rc = run_stops(r);
    r->samples.answers = true;
    return rc != 0 ? rc : read_prompts(r);
}

int rollouts_plan(struct run *r)
{
    int room;
    if (r->s->prompts.count > 0)
        return read_prompts(r);
    TRY(find_room(r, &room));
    take_lengths(r, room, room, r->s->teacher_prompt != NULL);
    return 0;
}

/* Return the most answers that a step may have. */
static int64_t most_answers(const struct run *r)
{
    return rows_of(r) * r->rollouts.each;
}

static int allocate(struct run *r)
{
    struct rollouts *o = &r->rollouts;
    const size_t answers = (size_t)most_answers(r), most = (size_t)r->s->max_new;
    o->own = calloc((size_t)rows_of(r), sizeof *o->own);
    o->answer = calloc(answers, sizeof *o->answer);
    o->generated = calloc(answers * most, sizeof *o->generated);
    if (!o->own || !o->answer || !o->generated)
        return fail(NJ_E_NOMEM, "out of memory for %zu answers of %zu tokens; lower --batch-size",
                    answers, most);
    return 0;
}

int rollouts_most(const struct run *r)
{
    const int64_t answers = most_answers(r);
    const int64_t wanted = r->s->rollout_batch > 0 ? r->s->rollout_batch : ROWS_AUTO;
    return (int)(wanted < answers ? wanted : answers);
}

int rollouts_mix(struct run *r)
{
    const struct train_options *o = &r->options;
    return answers_source_open(&r->batches, o->batch_size, o->seq_len, o->teacher_has_context,
                               &r->answers);
}

int rollouts_fit(struct run *r)
{
    const int rc = allocate(r);
    r->options.decode_rows = rollouts_most(r);
    if (rc != 0 || r->s->rollout_batch > 0)
        return rc;
    return run_fit_decoder(r, true, r->options.decode_rows);
}

void rollouts_say(struct run *r)
{
    const struct rollouts *o = &r->rollouts;
    const long long count = o->prompts ? (long long)prompts_count(o->prompts) : 0;
    char prompts[48] = "prompts (none given)";
    if (o->prompts)
        snprintf(prompts, sizeof prompts, "%lld prompt%s", count, plural(count));
    progress_say(&r->progress,
                 "on-policy: %s of at most %d token%s; %d answer%s per sequence, of at "
                 "most %lld tokens, written %d at a time",
                 prompts, o->longest, plural(o->longest), o->each, plural(o->each),
                 (long long)r->s->max_new, r->options.decode_rows);
}

double rollouts_steps(const struct run *r, double epochs)
{
    const double answers =
        epochs * (double)prompts_count(r->rollouts.prompts) * (double)r->s->group;
    return answers * (double)r->s->reuse / (double)most_answers(r);
}

/* ---- answers of a step ---- */

/* State of the prompts that are being answered. */
struct turn {
    struct run *run;
    /* Number of the first answer; number of answers; number of those begun. */
    int64_t first, count, taken;
    int most;
};

static int next(void *user, struct decode_prompt *out)
{
    struct turn *t = user;
    struct rollouts *o = &t->run->rollouts;
    const int64_t count = prompts_count(o->prompts);
    struct prompt p;
    if (t->taken == t->count)
        return 0;
    const int64_t number = t->first + t->taken, prompt = number / t->run->s->group;
    prompts_get(o->prompts, (uint64_t)(prompt / count), prompt % count, &p);
    struct answer *a = &o->answer[t->taken];
    *a = (struct answer){.prompt = p.ids,
                         .teacher = p.teacher_ids,
                         .teacher_count = (int)p.teacher_count,
                         .generated = &o->generated[(size_t)t->taken * (size_t)t->run->s->max_new],
                         .prompt_count = (int)p.count};
    /* The writer reads the prompt for which it will be asked. */
    const bool teacher = t->run->options.teacher_writes;
    *out = (struct decode_prompt){
        .ids = teacher ? p.teacher_ids : p.ids,
        .count = (int)(teacher ? p.teacher_count : p.count),
        .most = t->most,
        .number = (int32_t)(number & INT32_MAX),
        .user = a,
    };
    t->taken++;
    return 1;
}

static int generated(void *user, const struct decode_prompt *p, const int32_t *ids, int count,
                     enum decode_end end)
{
    struct rollouts *o = &((struct turn *)user)->run->rollouts;
    struct answer *a = p->user;
    int32_t *to =
        &o->generated[(size_t)(a - o->answer) * (size_t)((struct turn *)user)->run->s->max_new];
    memcpy(to + a->generated_count, ids, (size_t)count * sizeof *ids);
    a->generated_count += count;
    o->stats.tokens += count;
    o->stats.truncated += end == DECODE_LENGTH;
    return 0;
}

/* Return the most tokens of an answer in this step. */
static int horizon(const struct run *r, int64_t step)
{
    const int64_t from = r->s->horizon, to = r->s->max_new, steps = r->options.steps;
    if (from == 0 || steps < 2)
        return (int)to;
    return (int)(from + (to - from) * (step - 1) / (steps - 1));
}

static int write_answers(struct run *r, int64_t step)
{
    struct rollouts *o = &r->rollouts;
    struct turn t = {
        .run = r,
        .first = answers_before(r, step),
        .count = own_rows(r, step) * o->each,
        .most = horizon(r, step),
    };
    const struct decode_io io = {
        .next = next,
        .generated = generated,
        .user = &t,
        .how = {.temperature = (float)r->s->rollout_temperature,
                .top_p = (float)r->s->rollout_top_p,
                .seed = (uint64_t)r->s->seed},
        .stop = r->ends.stop,
        .stops = r->ends.stops,
    };
    const double from = clock_seconds();
    o->stats = (struct rollout_stats){.answers = t.count};
    batch_free(&o->rows);
    int rc = engine_decode(r->engine, &io);
    if (rc == 0)
        rc = answer_rows_make(o->answer, (size_t)t.count, r->options.seq_len, &o->rows);
    o->stats.seconds = clock_seconds() - from;
    return rc;
}

/* Return whether a multiple of `every` lies in a range. */
static bool has_multiple(int64_t first, int64_t last, int64_t every)
{
    return every > 0 && last / every * every >= first;
}

/* Record the first new answers to different prompts, if a step that uses them is the first or the last one, or is
 * followed by a measurement or a checkpoint. They are recorded when they are written, not when they are used again,
 * so that a run that is resumed in between has the same rows. */
static int record_answers(struct run *r, int64_t step)
{
    const struct settings *s = r->s;
    const struct rollouts *o = &r->rollouts;
    const int64_t last = step + s->reuse - 1;
    int rc = 0;
    if (step > 1 && last < r->options.steps && !has_multiple(step, last, s->eval_every) &&
        !has_multiple(step, last, s->save_every))
        return 0;
    for (int64_t i = 0; rc == 0 && i < ANSWERS_SHOWN && i * s->group < o->stats.answers; i++)
        rc =
            sample_log_answer(&r->samples, &r->tokenizer, &r->ends, step, &o->answer[i * s->group]);
    return rc;
}

/* Add the answers of a step to the totals. If none has ended, and they are not meant to be short, print that once. */
static void count_answers(struct run *r, int64_t step)
{
    enum { ENOUGH = 16 };
    struct rollouts *o = &r->rollouts;
    struct rollout_stats *a = &o->all;
    a->seconds += o->stats.seconds;
    a->answers += o->stats.answers;
    a->tokens += o->stats.tokens;
    a->truncated += o->stats.truncated;
    if (o->cut_said || a->truncated < a->answers || horizon(r, step) < r->s->max_new ||
        (a->answers < ENOUGH && step < r->options.steps))
        return;
    o->cut_said = true;
    progress_say(&r->progress,
                 "all %lld answers so far were cut at --max-new %lld: raise it, or check which "
                 "tokens end an answer of this student (docs/generation.md, \"Where a text ends\")",
                 (long long)a->answers, (long long)r->s->max_new);
}

int rollouts_step(struct run *r, int64_t step)
{
    struct rollouts *o = &r->rollouts;
    const bool again = (step - 1) % r->s->reuse != 0;
    o->stats = (struct rollout_stats){0};
    wait_begin("writing the answers of step %lld", (long long)step);
    wait_usual(3 * o->usual);
    int rc = again ? 0 : write_answers(r, step);
    wait_end();
    o->usual = again ? o->usual : o->stats.seconds;
    if (rc == 0 && !again)
        rc = record_answers(r, step);
    if (rc == 0 && o->stats.answers > 0)
        count_answers(r, step);
    for (int64_t row = 0; row < rows_of(r); row++)
        o->own[row] = is_own(r, step, row);
    answers_source_put(r->answers, &o->rows, o->own, rows_of(r));
    return rc;
}

void rollouts_say_all(struct run *r)
{
    const struct rollout_stats *a = &r->rollouts.all;
    if (a->answers == 0)
        return;
    progress_say(
        &r->progress,
        "%lld answer%s of %.1f tokens in the mean, %.0f %% cut at their limit; writing them "
        "took %.0f %% of the time",
        (long long)a->answers, plural(a->answers), (double)a->tokens / (double)a->answers,
        100 * (double)a->truncated / (double)a->answers,
        100 * a->seconds / (a->seconds + r->trained_seconds));
}

/* ---- checkpoints ---- */

static void answers_path(const char *dir, char *out, size_t bytes)
{
    snprintf(out, bytes, "%s/answers.bin", dir);
}

int rollouts_save(void *run, const char *dir)
{
    const struct run *r = run;
    char path[PATH_BYTES + 32];
    if (!rollouts_wanted(r->s) || r->s->reuse == 1)
        return 0;
    answers_path(dir, path, sizeof path);
    return answer_rows_write(&r->rollouts.rows, path);
}

int rollouts_load(struct run *r, const char *dir, int64_t step)
{
    char path[PATH_BYTES + 32];
    if (!rollouts_wanted(r->s) || step % r->s->reuse == 0)
        return 0;
    answers_path(dir, path, sizeof path);
    return answer_rows_read(path, r->options.seq_len, rows_of(r), r->vocab, &r->rollouts.rows);
}

void rollouts_close(struct rollouts *o)
{
    prompts_close(o->prompts);
    batch_free(&o->rows);
    free(o->own);
    free(o->answer);
    free(o->generated);
}
