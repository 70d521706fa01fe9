/* SPDX-License-Identifier: Apache-2.0
 *
 * task_run.h: benchmarks: what `nojit eval --tasks` does.
 */
#ifndef NOJIT_TRAINER_TASK_RUN_H
#define NOJIT_TRAINER_TASK_RUN_H

#include "run/run.h"

/* Reads the tasks, opens the engine, and writes what the model makes of them to standard output and --task-log. */
int run_tasks(struct run *r);

#endif
