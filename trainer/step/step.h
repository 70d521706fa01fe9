/* SPDX-License-Identifier: Apache-2.0
 *
 * step.h: functions of a step that evaluation and the preparation of GEMMs also use.
 */
#ifndef NOJIT_TRAINER_STEP_H
#define NOJIT_TRAINER_STEP_H

#include "state/engine_struct.h"

/* Find the first tensor of the models that holds a NaN or an infinity, and the model it is in; *name NULL: there is
 * none. */
int scan_weights(struct engine *e, const char **what, const char **name);
/* Return the objective, from the means of its two parts over the valid rows (docs/objective.md). */
double loss_of(const struct engine *e, double kd, double ce);

/* Compute the gradients of the staged micro-batches, in `total` on the device, and the sums of their losses. */
int step_gradients(struct engine *e);

#endif
