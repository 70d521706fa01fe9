/* SPDX-License-Identifier: Apache-2.0
 *
 * run_begin.h: the checkpoint that a run continues from, and the values that it stores for a later run.
 */
#ifndef NOJIT_TRAINER_RUN_BEGIN_H
#define NOJIT_TRAINER_RUN_BEGIN_H

#include "run/run.h"

/* Load the checkpoint to continue from, if there is one; *first becomes its step. Opens the files of rows. If
 * r->done is set, nothing was opened, since nothing is left to do. All ranks call this. */
int run_begin(struct run *r, int64_t *first);
/* Store what the next checkpoint has to hold besides the engine's state. */
void run_put_progress(struct run *r);

#endif
