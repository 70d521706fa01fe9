/* SPDX-License-Identifier: Apache-2.0
 *
 * micro_step.h: the passes over the micro-batch that lies in e->mem.rows, whole or in parts.
 */
#ifndef NOJIT_TRAINER_MICRO_STEP_H
#define NOJIT_TRAINER_MICRO_STEP_H

#include "state/engine_struct.h"

/* Run teacher, student, head and backward pass. Without `train` there are no gradients, and logits may be left in
 * the memory of the layers' gradients. */
void micro_step(struct work *r, struct engine *e, int chunks, bool train);

/* The functions below run it in parts, if groups of layers are exchanged during the backward pass. */

/* Run the forward pass of a group of layers; with the first group also the work before the layers. */
void micro_forward_group(struct work *r, struct engine *e, int group);
/* Run the head, and the backward pass of the norm before it. */
void micro_head(struct work *r, struct engine *e, int chunks);
/* Run one part of the backward pass: the groups of layers from the last to the first, then the embedding. */
void micro_backward_part(struct work *r, struct engine *e, int part);

#endif
