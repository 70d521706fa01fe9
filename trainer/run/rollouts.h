/* SPDX-License-Identifier: Apache-2.0
 *
 * rollouts.h: on-policy distillation: rows of a step that are the student's own answers to prompts.
 */
#ifndef NOJIT_TRAINER_ROLLOUTS_H
#define NOJIT_TRAINER_ROLLOUTS_H

#include "run/run.h"

/* Return whether --on-policy asks for answers. */
bool rollouts_wanted(const struct settings *s);
/* Refuse on-policy options that do not go together; the second function is for a plan, which may lack prompts and
 * data. */
int rollouts_check(const struct settings *s);
int rollouts_check_plan(const struct settings *s);
/* Read the prompts and print how long they are; the decoder of r->options has one row until rollouts_fit(). */
int rollouts_open(struct run *r);
/* Do the same for a plan, which writes nothing; without --prompts, prompts are as long as --seq-len and --max-new
 * allow. */
int rollouts_plan(struct run *r);
/* Return the most answers to write at a time: those of a step, or fewer. */
int rollouts_most(const struct run *r);
/* Let r->batches have answers among their rows; rollouts_step() supplies them. */
int rollouts_mix(struct run *r);
/* Set how many answers are written at a time: as --rollout-batch says, or as memory allows. */
int rollouts_fit(struct run *r);
/* Print a line about prompts and answers. */
void rollouts_say(struct run *r);
/* Print how long the answers were, how many were cut, and which part of the time writing them took; nothing if there
 * were none. */
void rollouts_say_all(struct run *r);
/* Return the number of steps in which each prompt is answered `epochs` times `--group` times. */
double rollouts_steps(const struct run *r, double epochs);
/* Have the student write the answers of this step, and put them into r->batches. */
int rollouts_step(struct run *r, int64_t step);
/* Save to a checkpoint, or load from it, the answers that later steps use again (--reuse). */
int rollouts_save(void *run, const char *dir);
int rollouts_load(struct run *r, const char *dir, int64_t step);
void rollouts_close(struct rollouts *o);

#endif
