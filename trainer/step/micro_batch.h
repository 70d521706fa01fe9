/* SPDX-License-Identifier: Apache-2.0
 *
 * micro_batch.h: the host's part of a micro-batch.
 */
#ifndef NOJIT_TRAINER_MICRO_BATCH_H
#define NOJIT_TRAINER_MICRO_BATCH_H

#include "state/engine_struct.h"
#include "step/score_batch.h"

/* Read micro-batch `micro` of the step into a slot of the pinned batches; with NO_SLOT only count its targets.
 * Return 1 at the end of the data. */
int stage_next(struct engine *e, struct batch_source *d, int micro, int slot);
/* Return rc, or NJ_ELSEWHERE if another rank could not stage its micro-batches. All ranks call it. */
int stage_agree(struct engine *e, struct batch_source *d, int rc);
int send_batch(struct engine *e, int slot);
/* Stage rows whose scores are wanted, or, without targets, their logits, in slot 0. Return the number of chunks of
 * the head that hold them, or a negative code if there are more positions than rows, or one lies outside. */
int stage_scored(struct engine *e, const struct score_batch *b);
/* Send what the teacher alone reads of the `count` micro-batches of its next pass, from `slot` on. */
void send_to_teacher(struct work *r, struct engine *e, int slot, int count);

#endif
