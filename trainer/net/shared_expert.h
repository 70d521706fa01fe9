/* SPDX-License-Identifier: Apache-2.0
 *
 * shared_expert.h: the expert of a mixture that all rows take.
 */
#ifndef NOJIT_TRAINER_SHARED_EXPERT_H
#define NOJIT_TRAINER_SHARED_EXPERT_H

#include "net/block.h"

/* Compute the output of the block's shared expert from block_rows(), and return it: it lies in v.output. Return NULL if
 * the block has none. Scratch of the other experts is overwritten. */
const void *shared_expert_fwd(struct work *r, const struct block_pass *p);
/* Add the output to the residual stream in a decoder's step of few rows, whose normed rows are in a->y; do nothing if
 * the block has no shared expert. */
void shared_expert_step(struct work *r, const struct block_pass *p);

#endif
