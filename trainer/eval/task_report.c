/* SPDX-License-Identifier: Apache-2.0
 *
 * task_report.c: see task_report.h.
 */
#include "eval/task_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "io/error.h"
#include "io/json_text.h"
#include "template/spaces.h"

enum metric { METRIC_ACC, METRIC_ACC_NORM, METRIC_EXACT };
static const char *const metric_names[TASK_METRICS] = {"acc", "acc_norm", "exact_match"};

/* ---- an item ---- */

/* Return the first of the choices with the largest score, per character if `norm`. */
static int best_choice(const struct task_answers *a, const struct task_item *it, bool norm)
{
    double best = 0;
    int found = 0;
    for (int i = 0; i < it->choices; i++) {
        struct task_choice c;
        tasks_choice(a->tasks, it->choice + i, &c);
        const double sum = a->score[it->choice + i], score = norm ? sum / c.characters : sum;
        if (i == 0 || score > best) {
            best = score;
            found = i;
        }
    }
    return found;
}

/* Return whether a text is the answer, apart from white space around them. */
static bool same_text(const struct pool *text, const struct task_item *it)
{
    const char *got = text->count > 0 ? text->at : "", *want = it->answer;
    size_t got_bytes = text->count, want_bytes = it->answer_bytes;
    text_strip(&got, &got_bytes);
    text_strip(&want, &want_bytes);
    return got_bytes == want_bytes && memcmp(got, want, got_bytes) == 0;
}

static bool has_metric(const struct task_item *it, enum metric m)
{
    return (m == METRIC_EXACT) == (it->kind == TASK_TEXT);
}

static bool is_right(const struct task_answers *a, int64_t i, const struct task_item *it,
                     enum metric m)
{
    return m == METRIC_EXACT ? same_text(&a->text[i], it)
                             : best_choice(a, it, m == METRIC_ACC_NORM) == it->gold;
}

/* ---- tasks ---- */

/* Return the standard error of a mean over items, of which the `right` ones count 1 and the others 0. */
static double standard_error(int64_t right, int64_t items)
{
    const double n = (double)items, mean = (double)right / n;
    const double squares =
        (double)right * (1 - mean) * (1 - mean) + (double)(items - right) * mean * mean;
    return items > 1 ? sqrt(squares / (n - 1)) / sqrt(n) : NAN;
}

/* Number of items of each task and metric, and of those that are right: [tasks, TASK_METRICS]. */
struct tally {
    int64_t items, right;
};

static void count(const struct task_answers *a, struct tally *all)
{
    for (int64_t i = 0; i < tasks_count(a->tasks); i++) {
        struct task_item it;
        tasks_get(a->tasks, i, &it);
        for (int m = 0; m < TASK_METRICS; m++) {
            struct tally *t = &all[it.task * TASK_METRICS + m];
            if (!has_metric(&it, (enum metric)m))
                continue;
            t->items++;
            t->right += is_right(a, i, &it, (enum metric)m);
        }
    }
}

int task_metrics(const struct task_answers *a, struct task_metric *out)
{
    const int all = tasks_names(a->tasks) * TASK_METRICS;
    struct tally *t = calloc((size_t)all, sizeof *t);
    int found = 0;
    if (!t)
        return fail(NJ_E_NOMEM, "out of memory for %d tasks", tasks_names(a->tasks));
    count(a, t);
    for (int i = 0; i < all; i++)
        if (t[i].items > 0)
            out[found++] = (struct task_metric){
                .task = tasks_name(a->tasks, i / TASK_METRICS),
                .metric = metric_names[i % TASK_METRICS],
                .value = (double)t[i].right / (double)t[i].items,
                .stderr_of = standard_error(t[i].right, t[i].items),
                .items = t[i].items,
            };
    free(t);
    return found;
}

/* ---- output ---- */

/* Print a name from a file, so that a terminal executes nothing in it. */
static void put_name(const char *name, int width, FILE *out)
{
    char *shown = strdup(name);
    if (shown)
        make_printable(shown);
    fprintf(out, "%-*s", width, shown ? shown : "?");
    free(shown);
}

static void put_number(double x, FILE *out)
{
    if (isnan(x))
        fprintf(out, "  %8s", "-");
    else
        fprintf(out, "  %8.4f", x);
}

void task_table(const struct task_metric *m, int count, FILE *out)
{
    int width = 4;
    for (int i = 0; i < count; i++)
        width = (int)strlen(m[i].task) > width ? (int)strlen(m[i].task) : width;
    fprintf(out, "%-*s  %-11s  %8s  %8s  %8s\n", width, "task", "metric", "value", "stderr",
            "items");
    for (int i = 0; i < count; i++) {
        put_name(m[i].task, width, out);
        fprintf(out, "  %-11s", m[i].metric);
        put_number(m[i].value, out);
        put_number(m[i].stderr_of, out);
        fprintf(out, "  %8lld\n", (long long)m[i].items);
    }
}

static int write_row(json_t *row, const char *path, FILE *out)
{
    return json_write_line(out, path, row, JSON_REAL_PRECISION(9));
}

/* Return a number, or null if JSON has none for it. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

int task_json(const struct task_metric *m, int count, FILE *out)
{
    for (int i = 0; i < count; i++)
        TRY(write_row(json_pack("{s:o, s:s, s:o, s:o, s:I}", "task", json_c_text(m[i].task),
                                "metric", m[i].metric, "value", number(m[i].value), "stderr",
                                number(m[i].stderr_of), "items", (json_int_t)m[i].items),
                      "standard output", out));
    return 0;
}

/* Return the scores and numbers of tokens of an item's choices. */
static json_t *list_choices(const struct task_answers *a, const struct task_item *it, bool tokens)
{
    json_t *list = json_array();
    for (int i = 0; i < it->choices; i++) {
        struct task_choice c;
        tasks_choice(a->tasks, it->choice + i, &c);
        json_array_append_new(list,
                              tokens ? json_integer(c.count) : number(a->score[it->choice + i]));
    }
    return list;
}

static json_t *log_choices(const struct task_answers *a, int64_t i, const struct task_item *it)
{
    return json_pack("{s:o, s:o, s:i, s:i, s:i, s:i, s:i}", "loglikelihoods",
                     list_choices(a, it, false), "tokens", list_choices(a, it, true), "choice",
                     best_choice(a, it, false), "choice_norm", best_choice(a, it, true), "answer",
                     it->gold, "acc", (int)is_right(a, i, it, METRIC_ACC), "acc_norm",
                     (int)is_right(a, i, it, METRIC_ACC_NORM));
}

static json_t *log_text(const struct task_answers *a, int64_t i, const struct task_item *it)
{
    const struct pool *text = &a->text[i];
    return json_pack("{s:o, s:o, s:i}", "text",
                     json_text(text->count > 0 ? text->at : "", text->count), "answer",
                     json_text(it->answer, it->answer_bytes), "exact_match",
                     (int)is_right(a, i, it, METRIC_EXACT));
}

static json_t *log_item(const struct task_answers *a, int64_t i, const struct task_item *it)
{
    json_t *row =
        json_pack("{s:o, s:o, s:o, s:I}", "task", json_c_text(tasks_name(a->tasks, it->task)), "id",
                  it->id ? json_loads(it->id, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL) : json_null(),
                  "file", json_c_text(it->path), "line", (json_int_t)it->line);
    json_t *rest = it->kind == TASK_TEXT ? log_text(a, i, it) : log_choices(a, i, it);
    const bool made = row && rest && json_object_update(row, rest) == 0;
    json_decref(rest);
    if (made)
        return row;
    json_decref(row);
    return NULL;
}

int task_log(const struct task_answers *a, const char *path, FILE *out)
{
    int rc = 0;
    for (int64_t i = 0; i < tasks_count(a->tasks) && rc == 0; i++) {
        struct task_item it;
        tasks_get(a->tasks, i, &it);
        rc = write_row(log_item(a, i, &it), path, out);
    }
    return rc;
}
