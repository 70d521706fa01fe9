/* SPDX-License-Identifier: Apache-2.0
 *
 * forward.h: one transformer, forward.
 */
#ifndef NOJIT_TRAINER_FORWARD_H
#define NOJIT_TRAINER_FORWARD_H

#include "net/acts.h"

/* What backward needs of a layer and forward did not keep; a->branch is overwritten. */
void net_forward_again(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                       int layer);
/* The norm of x as `reader`, PRODUCT_QKV or PRODUCT_GATE_UP, reads it: in a->y, or as e4m3 in a->x, whose largest scale
 * top keeps unless it is NULL. */
void net_norm(struct work *r, const struct net *n, struct acts *a, int layer, enum product reader,
              float *top, const void *x, float *rstd);
/* Part of a layer: o from raw, which gets the bias and is rotated; in a decoder over the sequences in its cache, which
 * gets keys and values. */
void net_attention(struct work *r, const struct net *n, const struct acts *a,
                   const struct rows *rows, int layer, const void *bias);
/* From ids to normed hidden rows in a->y. */
void net_forward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows);
/* The same in parts: embedding and first norm; layers, of which those from `from` until `to` are done here. */
void net_forward_embedding(struct work *r, const struct net *n, struct acts *a,
                           const struct rows *rows);
void net_forward_layers(struct work *r, const struct net *n, struct acts *a,
                        const struct rows *rows, int from, int to);

#endif
