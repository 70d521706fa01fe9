/* SPDX-License-Identifier: Apache-2.0
 *
 * task_report.h: what a model made of tasks.
 */
#ifndef NOJIT_TRAINER_TASK_REPORT_H
#define NOJIT_TRAINER_TASK_REPORT_H

#include <stdio.h>

#include "batch/tasks.h"
#include "data/pool.h"
#include "text/tokenizer.h"

/* Scores and texts of a model for the items. */
struct task_answers {
    const struct tasks *tasks;
    const double *score;     /* score of each choice: tasks_choice() */
    const struct pool *text; /* text of each item that has a prompt */
};

/* Fraction of a task's items that are right by a metric, as lm-evaluation-harness computes it. */
struct task_metric {
    const char *task, *metric;
    double value, stderr_of; /* standard error of the mean; NaN: there is a single item */
    int64_t items;
};

enum { TASK_METRICS = 3 }; /* most metrics of a task */
/* Compute the metrics; out has room for TASK_METRICS of each task. Returns how many there are. */
int task_metrics(const struct task_answers *a, struct task_metric *out);
/* Print the metrics as a table, or as a JSON object per line. */
void task_table(const struct task_metric *m, int count, FILE *out);
int task_json(const struct task_metric *m, int count, FILE *out);
/* Print a JSON object per item, in their order. */
int task_log(const struct task_answers *a, const char *path, FILE *out);

#endif
