/* SPDX-License-Identifier: Apache-2.0
 *
 * watchdog.h: ends the process when a step does not: a GPU that hangs keeps whoever waits for it
 * from doing anything at all.
 */
#ifndef NOJIT_TRAINER_WATCHDOG_H
#define NOJIT_TRAINER_WATCHDOG_H

#include "run/run.h"

/* Set the deadline of a step or of a batch of an evaluation, on GPUs: the first step of a run has the seconds of
 * --first-step-timeout. If several ranks share the run, a later step has these and ten times what the step before it
 * took, and so has each batch of an evaluation. */
void deadline_step(const struct run *r, int64_t step);
void deadline_evaluation(const struct run *r, int64_t step);
/* Set the deadline for loading the models if several ranks do so: each of their tensors has the seconds of a first
 * step. */
void deadline_load(const struct run *r);
/* Set the same deadline for collecting on rank 0 the parts that each rank has, for a checkpoint or model. */
void deadline_collection(const struct run *r);
/* End the deadline: the work is done. */
void deadline_end(const struct run *r);

#endif
