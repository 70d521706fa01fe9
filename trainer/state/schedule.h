/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule.h: learning rates.
 */
#ifndef NOJIT_TRAINER_SCHEDULE_H
#define NOJIT_TRAINER_SCHEDULE_H

#include "state/train_options.h"

/* Return the learning rate of a step, counted from 1. */
float schedule_lr(const struct train_options *o, int64_t step);
/* Return the number of warm-up steps that are `ratio` of all steps, rounded up. */
int64_t schedule_warmup(double ratio, int64_t steps);

#endif
