/* SPDX-License-Identifier: Apache-2.0
 *
 * run_engine.h: the engine of a run.
 */
#ifndef NOJIT_TRAINER_RUN_ENGINE_H
#define NOJIT_TRAINER_RUN_ENGINE_H

#include "run/run.h"

/* Open the engine, with the GEMM algorithms that --gemm-table keeps. A training run whose teacher is rounded by
 * --teacher-dtype first measures the effect of that. */
int run_open_engine(struct run *r);

#endif
