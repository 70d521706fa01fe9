/* SPDX-License-Identifier: Apache-2.0
 *
 * layer_gemm.h: the products of a layer; only this file decides on their adapters and gradients.
 */
#ifndef NOJIT_TRAINER_LAYER_GEMM_H
#define NOJIT_TRAINER_LAYER_GEMM_H

#include "net/acts.h"

/* Return the rows of a weight as T where another kernel may take the place of product_fwd() in this pass; else NULL. */
const void *product_weight(struct work *r, const struct acts *a, const struct matrix *m);
/* Return the rows of `count` experts as T, from expert `first` on, a multiple of m->experts_at_once: those of the first
 * of `stacks` matrices of each expert, then those of the next. */
const void *product_experts(struct work *r, const struct matrix *m, int stacks, int first,
                            int count);
/* Return whether the norm or activation before a product writes its x as E4M3, to a->x. */
bool product_x_made(const struct acts *a, const struct matrix *m);
/* Compute y = x W^T + bias, with its adapters. x is not read if it is in a->x. */
void product_fwd(struct work *r, const struct acts *a, const struct matrix *m, void *y,
                 const void *x);
/* Prepare dy for product_dw() and product_dx(), if its GEMMs are FP8. */
void product_gradient(struct work *r, const struct acts *a, const struct matrix *m, const void *dy);
/* Compute the gradients of W, dy^T x, and of the bias, if they are trained. x is not read if it is in a->x. */
void product_dw(struct work *r, const struct acts *a, const struct matrix *m, const void *dy,
                const void *x);
/* Compute dx = dy W, and the gradients of adapters, which alone read x. */
void product_dx(struct work *r, const struct acts *a, const struct matrix *m, void *dx,
                const void *dy, const void *x);

#endif
