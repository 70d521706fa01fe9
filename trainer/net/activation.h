/* SPDX-License-Identifier: Apache-2.0
 *
 * activation.h: the gated activation of a block. The kernels that compute it follow from its name alone.
 */
#ifndef NOJIT_TRAINER_ACTIVATION_H
#define NOJIT_TRAINER_ACTIVATION_H

#include "net/block.h"

bool activation_is_silu(const struct block *b);
/* Return whether one kernel multiplies by the weights of gate and up and applies the activation. */
bool activation_fused(const struct work *r, const struct block_pass *p);
/* Compute a->act from x and the weights w of gate and up, and gate and up too unless gu is NULL. */
void activation_gemm(struct work *r, const struct block_pass *p, void *gu, const void *x,
                     const void *w);
/* Compute y from gate and up of so many rows, by the activation of a block. */
void activation_rows(struct work *r, const struct block *b, enum nj_dtype T, void *y,
                     const void *gu, int rows);
/* Compute a->act from gate and up. */
void activation_fwd(struct work *r, const struct block_pass *p, const void *gu);
/* Compute a->x, the activation as E4M3, from gate and up. */
void activation_quantize(struct work *r, const struct block_pass *p, const void *gu);
/* Replace gu by its gradient, and a->dact, which holds the gradient of the activation, by the activation. */
void activation_bwd(struct work *r, const struct block_pass *p, void *gu);
/* Compute both as E4M3, in a->f8.dgu and a->x. */
void activation_bwd_quantize(struct work *r, const struct block_pass *p, const void *gu);

#endif
