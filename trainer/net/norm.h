/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.h: the norms between the blocks of a transformer. The first GEMM of a block reads normed rows; if its operands
 * are FP8, the norm writes them as such, to a->x, and else to a->y.
 */
#ifndef NOJIT_TRAINER_NORM_H
#define NOJIT_TRAINER_NORM_H

#include "net/block.h"

/* Compute y, the norm of the embedding's rows in a->y, which has no gain, and `rstd`, 1 / root mean square of each. */
void norm_embedding_fwd(struct work *r, const struct net *n, const struct acts *a, void *y,
                        float *rstd);
/* Compute the gradient of these rows from that of their norm, in a->dx. */
void norm_embedding_bwd(struct work *r, const struct net *n, const struct acts *a, float *rstd);
/* Compute the norm of a block's input, if it has one, for its first matrix; the largest scale of E4M3 goes to `top`,
 * unless it is NULL. */
void norm_fwd(struct work *r, const struct block_pass *p, float *top);
/* Compute it once more in the backward pass. */
void norm_again(struct work *r, const struct block_pass *p);
/* Compute a->branch, the norm of a block's output, if it has one. */
void norm_after_fwd(struct work *r, const struct block_pass *p);
/* Add the output of a block, normed if a norm follows the block, to the stream, and compute the norm of the sum for the
 * next block, in a->y, or in a->x as E4M3; next NULL: compute the final norm. */
void norm_add_fwd(struct work *r, const struct block_pass *p, const struct block_pass *next);
/* Compute a->dx from a->branch, the gradient of the rows that the final norm makes of x. */
void norm_final_bwd(struct work *r, const struct net *n, struct acts *a, const void *x,
                    const float *rstd);
/* Compute block_gradient() from a->dx, the gradient of the stream, if a norm follows the block. */
void norm_after_bwd(struct work *r, const struct block_pass *p);
/* Add the gradient of a block's input to a->dx; a->branch is that of block_rows(). */
void norm_bwd(struct work *r, const struct block_pass *p);
/* Add partial sums over rows to the gradient of a gain or bias; `first` -1: there is none. */
void norm_add_columns(struct work *r, const struct net *n, int64_t first, const float *part,
                      int rows, int columns);

#endif
