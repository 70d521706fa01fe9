/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics.c: see metrics.h.
 */
#include "record/metrics.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "io/error.h"

/* Add a loss as a row of the file gives it, so that a resumed run compares the same numbers. */
static void best_add(struct best *b, int64_t step, double loss)
{
    const float x = (float)loss;
    if (b->known && !(x < b->loss))
        b->worse++;
    else if (!isnan(x))
        *b = (struct best){.step = step, .loss = x, .known = true};
}

static void best_of_row(void *best, const char *row)
{
    long long step;
    double loss;
    if (sscanf(row, "{\"step\": %lld, \"eval_loss\": %lf", &step, &loss) == 2)
        best_add(best, step, loss);
}

bool metrics_settled(const struct metrics *m, int64_t patience)
{
    return patience > 0 && m->best.worse >= patience;
}

int metrics_open(struct metrics *m, const char *dir, int64_t resumed, struct rows_done *done)
{
    snprintf(m->path, sizeof m->path, "%s/metrics.jsonl", dir);
    return rows_open(m->path, resumed, best_of_row, &m->best, done, &m->file);
}

int metrics_close(struct metrics *m)
{
    FILE *f = m->file;
    m->file = NULL;
    const int rc = events_close(&m->events);
    if (f != NULL && fclose(f) != 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", m->path, strerror(errno));
    return rc;
}

struct field {
    const char *name;
    double value; /* null in the file if it is not finite */
};

/* Write a metric's name as other trainers call it in event files: "train/loss", "eval/loss". */
static void event_tag(const char *name, char *out, size_t bytes)
{
    static const char measured[] = "eval_";
    const size_t n = sizeof measured - 1;
    if (strncmp(name, measured, n) == 0)
        snprintf(out, bytes, "eval/%s", name + n);
    else
        snprintf(out, bytes, "train/%s", name);
}

static int put_events(struct events *e, int64_t step, const struct field *f, size_t count)
{
    char tag[64];
    int rc = 0;
    if (e->file == NULL)
        return 0;
    events_begin(e, step);
    for (size_t i = 0; i < count && rc == 0; i++) {
        event_tag(f[i].name, tag, sizeof tag);
        rc = events_scalar(e, tag, f[i].value);
    }
    return rc != 0 ? rc : events_end(e);
}

static int put_row(struct metrics *m, int64_t step, const struct field *f, size_t count)
{
    char row[2048];
    if (m->file == NULL)
        return 0;
    int n = snprintf(row, sizeof row, "{\"step\": %lld", (long long)step);
    for (size_t i = 0; i < count; i++)
        n +=
            isfinite(f[i].value)
                ? snprintf(row + n, sizeof row - (size_t)n, ", \"%s\": %.9g", f[i].name, f[i].value)
                : snprintf(row + n, sizeof row - (size_t)n, ", \"%s\": null", f[i].name);
    snprintf(row + n, sizeof row - (size_t)n, "}\n");
    if (m->echo) {
        fputs(row, stdout);
        fflush(stdout);
    }
    if (fputs(row, m->file) < 0 || fflush(m->file) != 0)
        return fail(NJ_E_IO, "%s: cannot be written: %s", m->path, strerror(errno));
    return put_events(&m->events, step, f, count);
}

enum { BALANCE_FIELDS = 1, ROLLOUT_FIELDS = 8, FIELDS_MOST = 32 };

#define STEP_FIELD(name) {#name, r->name},
#define EVAL_FIELD(name) {"eval_" #name, r->name},

static void add_fields(struct field *to, size_t *count, const struct field *from, size_t more)
{
    CHECK(*count + more <= FIELDS_MOST);
    memcpy(to + *count, from, more * sizeof *from);
    *count += more;
}

int metrics_step(struct metrics *m, int64_t step, const struct step_result *r,
                 const struct rollout_stats *answers)
{
    const struct rollout_stats none = {0}, *a = answers ? answers : &none;
    const double seconds = r->passed_over ? NAN : r->step_ms * 1e-3;
    const struct field fields[] = {
        {"loss", r->loss},
        OBJECTIVE_SUMS(STEP_FIELD) /* kd_loss, ... */
        {"lr", r->lr},
        {"grad_norm", r->grad_norm},
        {"tokens", (double)r->tokens},
        {"valid_tokens", (double)r->valid_tokens},
        {"tokens_per_second", (double)r->tokens / seconds},
        {"step_ms", r->step_ms},
        {"mfu_student", m->ideal.student / seconds},
        {"mfu_teacher", m->ideal.teacher / seconds},
        {"memory_bytes", (double)m->memory_bytes},
        {"skipped_updates", (double)r->skipped_updates},
    };
    const struct field balance[BALANCE_FIELDS] = {{"balance_loss", r->balance_loss}};
    const struct field of_answers[ROLLOUT_FIELDS] = {
        /* The composition of answers is null for a step that reuses earlier answers. */
        {"rollout_seconds", a->seconds},
        {"rollout_tokens", (double)a->tokens},
        {"rollout_tokens_per_second", (double)a->tokens / a->seconds},
        {"rollout_length", (double)a->tokens / (double)a->answers},
        {"rollout_truncated", (double)a->truncated / (double)a->answers},
        {"student_entropy", r->student_entropy},
        {"forward_kl", r->forward_kl},
        {"reverse_kl", r->reverse_kl},
    };
    struct field all[FIELDS_MOST];
    size_t count = 0;
    add_fields(all, &count, fields, sizeof fields / sizeof fields[0]);
    add_fields(all, &count, balance, r->balanced ? BALANCE_FIELDS : 0);
    add_fields(all, &count, of_answers, answers ? ROLLOUT_FIELDS : 0);
    return put_row(m, step, all, count);
}

int metrics_eval(struct metrics *m, int64_t step, const struct eval_result *r)
{
    best_add(&m->best, step, r->loss);
    const struct field fields[] = {
        {"eval_loss", r->loss},
        OBJECTIVE_SUMS(EVAL_FIELD) /* eval_kd_loss, ... */
        {"eval_perplexity", r->perplexity},
        {"eval_tokens", (double)r->valid_tokens},
    };
    return put_row(m, step, fields, sizeof fields / sizeof fields[0]);
}
