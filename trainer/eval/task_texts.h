/* SPDX-License-Identifier: Apache-2.0
 *
 * task_texts.h: what a model writes to the prompts of tasks.
 */
#ifndef NOJIT_TRAINER_TASK_TEXTS_H
#define NOJIT_TRAINER_TASK_TEXTS_H

#include "batch/tasks.h"
#include "data/pool.h"
#include "run/run.h"

/* Chooses how many positions and sequences the decoder of r->options has, none where no item has a prompt. */
int task_texts_open(struct run *r, const struct tasks *t);
/* text[i]: what follows the prompt of item i by greedy decoding, without what `until` of the item ends it with; for the
 * caller to free. */
int task_texts_run(struct run *r, const struct tasks *t, struct pool *text);

#endif
