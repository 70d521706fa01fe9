/* SPDX-License-Identifier: Apache-2.0
 *
 * run_begin.h: where a run goes on from, and what it leaves for that.
 */
#ifndef NOJIT_TRAINER_RUN_BEGIN_H
#define NOJIT_TRAINER_RUN_BEGIN_H

#include "run/run.h"

/* Loads the checkpoint to go on from, if there is one, *first: its step, and opens the files of
 * rows. Where r->done nothing was opened, as there is nothing left to do. Of all ranks. */
int run_begin(struct run *r, int64_t *first);
/* What the next checkpoint is to know beside the engine's state. */
void run_put_progress(struct run *r);

#endif
