/* SPDX-License-Identifier: Apache-2.0
 *
 * experts.h: what the files of a mixture of experts share. The loss that balances experts (docs/objective.md) is
 * computed in three steps: sums are zeroed before a pass, each layer adds to them, and the backward pass starts from
 * their gradient.
 */
#ifndef NOJIT_TRAINER_EXPERTS_H
#define NOJIT_TRAINER_EXPERTS_H

#include "base/tensor_type.h"
#include "net/block.h"
#include "nojit.h"

#include <stdbool.h>

/* Arrays that the backward pass reads: [N J, 2 I] gate and up by place, in whose place it puts their gradient; and all
 * that the router has decided. */
enum { EXPERTS_KEPT_GATE_UP, EXPERTS_KEPT_ROUTES, EXPERTS_ARRAYS };

/* Return whether a device has kernels in which few rows read the blocks of the experts that they choose. */
bool experts_read_blocks(const nj_context *ctx, enum nj_tensor_type type);

/* Return the largest number of experts of a block, and of those that a row takes; 0: no block has any. */
size_t experts_most(const struct net *n);
size_t experts_most_used(const struct net *n);
/* Carve what a router decides for so many rows. */
void experts_carve_routes(size_t rows, size_t pairs, size_t experts, struct carve *m,
                          struct expert_acts *e);

/* Let struct acts have the arrays of a block, in a training pass. */
void experts_use_kept(const struct block_pass *p);
void experts_carve_backward(const struct net *n, size_t rows, struct carve *m, struct acts *a);
void experts_backward(struct work *r, const struct block_pass *p);

void experts_carve_shares(const struct net *n, struct carve *m, struct acts *a);
void experts_begin(struct work *r, const struct net *n, struct acts *a);
void experts_add_shares(struct work *r, const struct block_pass *p);
void experts_begin_backward(struct work *r, const struct net *n, struct acts *a);

#endif
