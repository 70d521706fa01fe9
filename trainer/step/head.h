/* SPDX-License-Identifier: Apache-2.0
 *
 * head.h: logits, objective and its gradient.
 */
#ifndef NOJIT_TRAINER_HEAD_H
#define NOJIT_TRAINER_HEAD_H

#include "state/engine_struct.h"

/* Gather the normed rows that were staged, or that have a target, to e->mem.hidden, in as many chunks as hold
 * them. */
void head_gather(struct work *r, struct engine *e, int chunks);
/* Compute the logits of the chunk that begins with row `first`, in e->mem.logits. Return its rows. */
char *head_logits(struct work *r, struct engine *e, int first);

/* Compute the losses of the valid rows; with `train` also the gradients of the normed rows (in branch) and of the
 * head. */
void head_losses(struct work *r, struct engine *e, int chunks, bool train);

/* Compute the cross-entropies of the rows with a target, to pinned memory. */
void head_scores(struct work *r, struct engine *e, int chunks, float *ce);

#endif
