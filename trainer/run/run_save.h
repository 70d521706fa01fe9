/* SPDX-License-Identifier: Apache-2.0
 *
 * run_save.h: the state of a run as a checkpoint. All ranks call these, and rank 0 writes.
 */
#ifndef NOJIT_TRAINER_RUN_SAVE_H
#define NOJIT_TRAINER_RUN_SAVE_H

#include "run/run.h"

/* Save the state after a step as a checkpoint, or as OUT/best. */
int run_save(struct run *r, int64_t step, bool best);
/* Save the state after a step when later work has failed with `rc`, and add to its sentence. The rank that has a
 * sentence prints it when that is done. Returns rc, or why another rank failed. */
int run_save_the_rest(struct run *r, int rc, int64_t step);

#endif
