/* SPDX-License-Identifier: Apache-2.0
 *
 * forward.h: the forward pass of one transformer.
 */
#ifndef NOJIT_TRAINER_FORWARD_H
#define NOJIT_TRAINER_FORWARD_H

#include "net/acts.h"

/* Recompute what the backward pass needs of a layer and the forward pass did not keep; a->branch is overwritten. */
void net_forward_again(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                       int layer);
/* Compute the norm of x in the form that `reader`, PRODUCT_QKV or PRODUCT_GATE_UP, reads: in a->y, or as E4M3 in
 * a->x, whose largest scale goes to `top` unless that is NULL. */
void net_norm(struct work *r, const struct net *n, struct acts *a, int layer, enum product reader,
              float *top, const void *x, float *rstd);
/* Compute o from raw, after adding the bias and rotating; a decoder attends to the sequences in its cache, to which
 * keys and values are added. */
void net_attention(struct work *r, const struct net *n, const struct acts *a,
                   const struct rows *rows, int layer, const void *bias);
/* Compute normed hidden rows in a->y from ids. */
void net_forward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows);
/* Run one part of the forward pass: embedding and first norm; the layers from `from` until `to`. */
void net_forward_embedding(struct work *r, const struct net *n, struct acts *a,
                           const struct rows *rows);
void net_forward_layers(struct work *r, const struct net *n, struct acts *a,
                        const struct rows *rows, int from, int to);

#endif
