/* SPDX-License-Identifier: Apache-2.0
 *
 * update.h: computes new weights from the summed gradients of a step.
 */
#ifndef NOJIT_TRAINER_UPDATE_H
#define NOJIT_TRAINER_UPDATE_H

#include "state/engine_struct.h"

/* Return whether losses are scaled, so that gradients of float16 neither vanish nor overflow. */
bool update_scales_loss(const struct engine *e);
/* Compute the norm of the gradients and the scale that clips them, into the step state. */
void update_clip(struct work *r, struct engine *e);
/* Run AdamW over the shards of this rank, and gather the weights of all ranks. */
void update_weights(struct work *r, struct engine *e);

#endif
