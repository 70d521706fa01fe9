/* SPDX-License-Identifier: Apache-2.0
 *
 * task_run.c: see task_run.h.
 */
#include "eval/task_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/plural.h"
#include "batch/tasks.h"
#include "eval/task_report.h"
#include "eval/task_scores.h"
#include "eval/task_texts.h"
#include "io/error.h"
#include "io/unfinished.h"
#include "run/run_engine.h"
#include "run/run_inputs.h"
#include "run/teacher_types.h"

/* Tasks of a run, with their results. */
struct bench {
    struct tasks *tasks;
    struct task_scores *scores;
    double *score;     /* score of each choice */
    struct pool *text; /* text of each item */
    struct task_metric *metric;
    FILE *log;
};

static int open_items(struct run *r, struct bench *b)
{
    const struct path_list *given = &r->s->tasks;
    const struct tasks_options o = {
        .paths = given->path, .path_count = given->count, .vocab_size = r->vocab};
    TRY(tasks_open(&o, &r->tokenizer, &b->tasks));
    progress_passed_over(&r->progress, tasks_passed_over(b->tasks));
    const size_t names = (size_t)tasks_names(b->tasks);
    b->score = calloc((size_t)tasks_choices(b->tasks) + 1, sizeof *b->score);
    b->text = calloc((size_t)tasks_count(b->tasks), sizeof *b->text);
    b->metric = calloc(names * TASK_METRICS, sizeof *b->metric);
    return b->score && b->text && b->metric ? 0 : fail(NJ_E_NOMEM, "out of memory for the items");
}

static int make_log(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

/* Open the log before anything is computed, so that no work is lost if that fails. */
static int open_log(const struct run *r, struct bench *b)
{
    const char *path = r->s->task_log;
    if (path == NULL)
        return 0;
    const int fd = unfinished_make(path, make_log);
    b->log = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (fd >= 0 && !b->log) {
        close(fd);
        unlink(path);
        unfinished_done(path);
    }
    if (fd < 0 && errno == EEXIST)
        return fail(NJ_E_ARG, "--task-log %s: it exists; remove it, or name another file", path);
    return b->log ? 0 : fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
}

/* Close the log; an empty or incomplete one is removed. */
static int close_log(const struct run *r, struct bench *b, int rc)
{
    const char *path = r->s->task_log;
    if (b->log == NULL)
        return rc;
    const bool closed = fclose(b->log) == 0;
    if (rc == 0 && !closed)
        rc = fail(NJ_E_IO, "%s: cannot be written: %s", path, strerror(errno));
    if (rc != 0)
        unlink(path);
    unfinished_done(path);
    return rc;
}

static int open_bench(struct run *r, struct bench *b)
{
    TRY(run_open_tokenizer(r));
    TRY(run_engine_options(r));
    TRY(run_student_types(r));
    TRY(open_items(r, b));
    TRY(task_scores_open(r, b->tasks, &b->scores));
    TRY(task_texts_open(r, b->tasks));
    TRY(open_log(r, b));
    return run_open_engine(r);
}

static int report(struct run *r, const struct bench *b)
{
    const struct task_answers a = {b->tasks, b->score, b->text};
    const int count = task_metrics(&a, b->metric);
    if (count < 0)
        return count;
    const int rc = b->log ? task_log(&a, r->s->task_log, b->log) : 0;
    if (rc != 0 || r->s->json)
        return rc != 0 ? rc : task_json(b->metric, count, stdout);
    task_table(b->metric, count, stdout);
    return 0;
}

static int run_bench(struct run *r, struct bench *b)
{
    const double from = clock_seconds();
    const long long items = (long long)tasks_count(b->tasks);
    if (b->scores)
        TRY(task_scores_run(r, b->scores, b->score));
    TRY(task_texts_run(r, b->tasks, b->text));
    progress_say(&r->progress, "%lld item%s in %.2f s", items, plural(items),
                 clock_seconds() - from);
    return report(r, b);
}

static void free_bench(struct bench *b)
{
    for (int64_t i = 0; b->text && i < tasks_count(b->tasks); i++)
        free(b->text[i].at);
    free(b->text);
    free(b->score);
    free(b->metric);
    task_scores_close(b->scores);
    tasks_close(b->tasks);
}

int run_tasks(struct run *r)
{
    struct bench b = {0};
    int rc = open_bench(r, &b);
    if (rc == 0)
        rc = run_bench(r, &b);
    rc = close_log(r, &b, rc);
    free_bench(&b);
    return rc;
}
