/* SPDX-License-Identifier: Apache-2.0
 *
 * task_run.h: benchmarks: what `nojit eval --tasks` does.
 */
#ifndef NOJIT_TRAINER_TASK_RUN_H
#define NOJIT_TRAINER_TASK_RUN_H

#include "run/run.h"

/* Read the tasks, open the engine, and write the model's results to standard output and --task-log. */
int run_tasks(struct run *r);

#endif
