/* SPDX-License-Identifier: Apache-2.0
 *
 * step_product.h: products of a block in a decoder's step of few rows. Each is one kernel with what stands beside it:
 * the norm of the residual stream before it, or the addition to it after it. Only blocks call this.
 */
#ifndef NOJIT_TRAINER_STEP_PRODUCT_H
#define NOJIT_TRAINER_STEP_PRODUCT_H

#include "net/block.h"

/* Compute y = norm(stream) W^T + bias, [M, rows of W]; bias NULL: none. */
void step_normed_product(struct work *r, const struct block_pass *p, int which, void *y,
                         const void *bias);
/* Compute y = silu(gate) up, [M, half of the rows of W], where gate and up are the halves of norm(stream) W^T. */
void step_normed_swiglu(struct work *r, const struct block_pass *p, int which, void *y);
/* Add x W^T, times its factor, to the stream. */
void step_add_product(struct work *r, const struct block_pass *p, int which, const void *x);

#endif
