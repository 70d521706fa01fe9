/* SPDX-License-Identifier: Apache-2.0
 *
 * head.h: logits, objective and its gradient.
 */
#ifndef NOJIT_TRAINER_HEAD_H
#define NOJIT_TRAINER_HEAD_H

#include "state/engine_struct.h"

/* The normed rows that were staged, or that have a target, as many chunks as hold them: to e->mem.hidden. */
void head_gather(struct work *r, struct engine *e, int chunks);
/* Logits of the chunk of these that begins with row `first`: e->mem.logits. Returns its rows. */
char *head_logits(struct work *r, struct engine *e, int first);

/* Losses of the valid rows; with train also the gradient of the normed rows (in branch) and
 * of the head. */
void head_losses(struct work *r, struct engine *e, int chunks, bool train);

/* Cross-entropies of the rows with a target, to pinned memory. */
void head_scores(struct work *r, struct engine *e, int chunks, float *ce);

#endif
