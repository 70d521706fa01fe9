/* SPDX-License-Identifier: Apache-2.0
 *
 * task_scores.c: see task_scores.h.
 */
#include "eval/task_scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "batch/task_rows.h"
#include "io/error.h"
#include "model/model_open.h"

/* Positions of a row without --seq-len. */
enum { ROW_POSITIONS = 1024 };

struct task_scores {
    struct task_rows *rows;
    struct task_batch batch;
    float *ce; /* losses of the batch */
    int64_t choices;
};

static int make_rows(struct run *r, const struct tasks *t, struct task_scores *s)
{
    struct model_config c;
    int given = r->options.seq_len;
    TRY(source_config(r->student, &c));
    const int most = config_positions(&c), usual = ROW_POSITIONS < most ? ROW_POSITIONS : most;
    if (given > most)
        return fail(NJ_E_ARG, "%s takes %d tokens at most; pass --seq-len %d or less", r->student,
                    most, most);
    TRY(task_rows_make(t, given > 0 ? given : most, given > 0 ? given : usual, &s->rows));
    const int64_t rows = task_rows_count(s->rows), cut = task_rows_cut(s->rows);
    r->options.seq_len = task_rows_length(s->rows);
    if (r->options.batch_size > rows)
        r->options.batch_size = (int)rows;
    if (cut > 0)
        progress_say(&r->progress,
                     "%lld choice%s longer than %d tokens with the context, the beginning of "
                     "which is left out",
                     (long long)cut, cut == 1 ? " is" : "s are", given > 0 ? given : most);
    return 0;
}

static int open_scores(struct run *r, const struct tasks *t, struct task_scores *s)
{
    s->choices = tasks_choices(t);
    TRY(make_rows(r, t, s));
    TRY(task_batch_open(s->rows, r->options.batch_size, &s->batch));
    const size_t n = (size_t)s->batch.text.B * (size_t)s->batch.text.S;
    s->ce = malloc(n * sizeof *s->ce);
    return s->ce ? 0 : fail(NJ_E_NOMEM, "out of memory for %zu scores", n);
}

int task_scores_open(struct run *r, const struct tasks *t, struct task_scores **out)
{
    *out = NULL;
    if (tasks_choices(t) == 0) {
        r->options.batch_size = r->options.seq_len = 1;
        return 0;
    }
    struct task_scores *s = calloc(1, sizeof *s);
    if (!s)
        return fail(NJ_E_NOMEM, "out of memory");
    const int rc = open_scores(r, t, s);
    if (rc != 0)
        task_scores_close(s);
    else
        *out = s;
    return rc;
}

void task_scores_close(struct task_scores *s)
{
    if (!s)
        return;
    task_rows_free(s->rows);
    task_batch_close(&s->batch);
    free(s->ce);
    free(s);
}

static int score_rows(struct run *r, struct task_scores *s, double *score)
{
    const struct task_batch *b = &s->batch;
    const struct score_batch batch = {.ids = b->text.ids,
                                      .pos = b->text.pos,
                                      .doc_start = b->text.doc_start,
                                      .at = b->at,
                                      .target = b->next,
                                      .count = b->count};
    TRY(engine_score(r->engine, &batch, s->ce));
    for (int i = 0; i < b->count; i++)
        score[b->owner[i]] -= (double)s->ce[i];
    return 0;
}

/* Check the scores, and name the model's weights if they cause a bad one. */
static int check_scores(struct run *r, const struct task_scores *s, const double *score)
{
    for (int64_t i = 0; i < s->choices; i++)
        if (!isfinite(score[i]))
            return engine_check_eval(r->engine, &(struct eval_result){.ce_loss = score[i]});
    return 0;
}

int task_scores_run(struct run *r, struct task_scores *s, double *score)
{
    int64_t done = 0;
    int rc = 0;
    memset(score, 0, (size_t)s->choices * sizeof *score);
    for (int64_t row = 0; row < task_rows_count(s->rows) && rc == 0; row += s->batch.text.B) {
        progress_choices(&r->progress, done, s->choices);
        task_batch_fill(s->rows, row, &s->batch);
        rc = score_rows(r, s, score);
        done += s->batch.choices;
    }
    progress_clear(&r->progress);
    return rc != 0 ? rc : check_scores(r, s, score);
}
