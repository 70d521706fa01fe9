/* SPDX-License-Identifier: Apache-2.0
 *
 * run_engine.h: the engine of a run.
 */
#ifndef NOJIT_TRAINER_RUN_ENGINE_H
#define NOJIT_TRAINER_RUN_ENGINE_H

#include "run/run.h"

/* Opens the engine, with the algorithms of matrix products that --gemm-table keeps. A run that trains
 * whose teacher --teacher-dtype rounds measures first what that changes. */
int run_open_engine(struct run *r);

#endif
