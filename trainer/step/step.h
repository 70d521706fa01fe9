/* SPDX-License-Identifier: Apache-2.0
 *
 * step.h: what a step shares with evaluation and with the preparation of products.
 */
#ifndef NOJIT_TRAINER_STEP_H
#define NOJIT_TRAINER_STEP_H

#include "state/engine_struct.h"

/* The first tensor of the models that holds a NaN or an infinity, and what it is; *name NULL: none does. */
int scan_weights(struct engine *e, const char **what, const char **name);
/* The objective, from the means of its two parts over the valid rows (docs/objective.md). */
double loss_of(const struct engine *e, double kd, double ce);

/* Leaves the gradients of the staged micro-batches on the device, in `total`, and the sums of their losses. */
int step_gradients(struct engine *e);

#endif
