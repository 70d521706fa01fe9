/* SPDX-License-Identifier: Apache-2.0
 *
 * task_scores.h: how likely each choice of a task is behind its context.
 */
#ifndef NOJIT_TRAINER_TASK_SCORES_H
#define NOJIT_TRAINER_TASK_SCORES_H

#include "batch/tasks.h"
#include "run/run.h"

struct task_scores; /* rows of texts */

/* Pack contexts and choices into rows, and choose --seq-len and --batch-size of r->options for them; *out is NULL if
 * no item has choices. A text that is longer than a row loses its beginning. */
int task_scores_open(struct run *r, const struct tasks *t, struct task_scores **out);
/* Compute score[i], the sum of log p of the tokens of choice i (tasks_choice()), with r->engine. */
int task_scores_run(struct run *r, struct task_scores *s, double *score);
void task_scores_close(struct task_scores *s); /* NULL is fine */

#endif
