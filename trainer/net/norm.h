/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.h: the norms between the blocks of a transformer. The first GEMM of a block reads normed rows; if its operands
 * are FP8, the norm writes them as such, to a->x, and else to a->y.
 */
#ifndef NOJIT_TRAINER_NORM_H
#define NOJIT_TRAINER_NORM_H

#include "net/block.h"

/* Compute the norm of a block's input, for its first matrix; the largest scale of E4M3 goes to `top`, unless it is
 * NULL. */
void norm_fwd(struct work *r, const struct block_pass *p, float *top);
/* Compute it once more in the backward pass. */
void norm_again(struct work *r, const struct block_pass *p);
/* Compute v->next = v->x + the branch, and its norm in a->y, or in a->x as E4M3 if `made`. */
void norm_add_fwd(struct work *r, const struct net *n, struct acts *a, const struct block_acts *v,
                  int64_t gain, bool made);
/* Compute dx = dres + the gradient through the norm of x; a->branch is the gradient of its output. */
void norm_bwd(struct work *r, const struct net *n, struct acts *a, int64_t gain, const void *x,
              const float *rstd, const void *dres);
/* Add partial sums over rows to the gradient of a gain or bias. */
void norm_add_columns(struct work *r, const struct net *n, int64_t first, const float *part,
                      int rows, int columns);

#endif
