/* SPDX-License-Identifier: Apache-2.0
 *
 * rollouts.h: on-policy distillation: rows of a step that are the student's own answers to prompts.
 */
#ifndef NOJIT_TRAINER_ROLLOUTS_H
#define NOJIT_TRAINER_ROLLOUTS_H

#include "run/run.h"

/* Whether --on-policy asks for any. */
bool rollouts_wanted(const struct settings *s);
/* Refuses options of theirs that do not go together: of a run, and of a plan, which may lack prompts and data. */
int rollouts_check(const struct settings *s);
int rollouts_check_plan(const struct settings *s);
/* Reads the prompts and says how long they are; the decoder of r->options has one row until rollouts_fit(). */
int rollouts_open(struct run *r);
/* The same for a plan, by which nothing is written; without --prompts they are as long as --seq-len and --max-new
 * let them be. */
int rollouts_plan(struct run *r);
/* Answers at a time at most: those of a step, or fewer. */
int rollouts_most(const struct run *r);
/* Lets r->batches have answers among their rows, which rollouts_step() gives. */
int rollouts_mix(struct run *r);
/* As many answers at a time as --rollout-batch says, or as there is memory for. */
int rollouts_fit(struct run *r);
/* A line about prompts and answers. */
void rollouts_say(struct run *r);
/* Says how long answers were, how many were cut, and what part of the time writing them took; nothing without any. */
void rollouts_say_all(struct run *r);
/* Steps in which each prompt is answered so many times `--group`. */
double rollouts_steps(const struct run *r, double epochs);
/* Lets the student write what it will learn from in this step, which r->batches then have. */
int rollouts_step(struct run *r, int64_t step);
/* Into a checkpoint and back: answers that later steps use again (--reuse). */
int rollouts_save(void *run, const char *dir);
int rollouts_load(struct run *r, const char *dir, int64_t step);
void rollouts_close(struct rollouts *o);

#endif
