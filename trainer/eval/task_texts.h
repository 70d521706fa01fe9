/* SPDX-License-Identifier: Apache-2.0
 *
 * task_texts.h: what a model writes to the prompts of tasks.
 */
#ifndef NOJIT_TRAINER_TASK_TEXTS_H
#define NOJIT_TRAINER_TASK_TEXTS_H

#include "batch/tasks.h"
#include "data/pool.h"
#include "run/run.h"

/* Choose how many positions and sequences the decoder of r->options has; none if no item has a prompt. */
int task_texts_open(struct run *r, const struct tasks *t);
/* Write text[i], the continuation of the prompt of item i by greedy decoding, cut before the first `until` text of
 * the item. The caller frees it. */
int task_texts_run(struct run *r, const struct tasks *t, struct pool *text);

#endif
