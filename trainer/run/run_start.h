/* SPDX-License-Identifier: Apache-2.0
 *
 * run_start.h: what a run says when all it needs is open.
 */
#ifndef NOJIT_TRAINER_RUN_START_H
#define NOJIT_TRAINER_RUN_START_H

#include "run/run.h"

/* Print what is trained, on what, and how long. */
void run_say_start(struct run *r);
/* Print that training starts from the weights of a quantized file and continues in --dtype. */
int run_say_expanded(struct run *r);

#endif
