/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h: a step that several ranks share, and the one place where their gradients are added. Micro-batch m of a step
 * belongs to rank m mod ranks. Sums are float32, in the order of ranks, so bits depend on their number alone.
 */
#ifndef NOJIT_TRAINER_RANKS_H
#define NOJIT_TRAINER_RANKS_H

#include "engine/engine_struct.h"

/* Where a micro-batch is staged: those of a rank lie side by side. And back. */
int ranks_slot(const struct shape *s, int micro);
int ranks_micro(const struct shape *s, int slot);
/* Elements of a shard of what is trained; the last one may have fewer, or none. */
int64_t ranks_shard(int64_t count, int ranks);

/* After the last micro-batch of a rank: adds its gradients and its losses to those of the ranks before it. */
int ranks_add(struct engine *e, int rank);
/* Squares of the summed gradients, shard by shard. */
void ranks_sumsq(struct work *r, struct engine *e);

#endif
