/* SPDX-License-Identifier: Apache-2.0
 *
 * watchdog.h: ends the process when a step does not: a GPU that hangs keeps whoever waits for it
 * from doing anything at all.
 */
#ifndef NOJIT_TRAINER_WATCHDOG_H
#define NOJIT_TRAINER_WATCHDOG_H

#include "run/run.h"

/* On GPUs, from now on: the first step of a run has the seconds of --first-step-timeout. Where several ranks share the
 * run, a later step has these and ten times what the one before it took, and so has each batch of an evaluation. */
void deadline_step(const struct run *r, int64_t step);
void deadline_evaluation(const struct run *r, int64_t step);
/* Loading the models, where several ranks do: each of their tensors has the seconds of a first step. */
void deadline_load(const struct run *r);
/* What each rank has a part of, on its way to rank 0 for a checkpoint or model: the same again. */
void deadline_collection(const struct run *r);
/* It has ended. */
void deadline_end(const struct run *r);

#endif
