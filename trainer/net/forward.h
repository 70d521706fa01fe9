/* SPDX-License-Identifier: Apache-2.0
 *
 * forward.h: the forward pass of one transformer.
 */
#ifndef NOJIT_TRAINER_FORWARD_H
#define NOJIT_TRAINER_FORWARD_H

#include "net/block.h"

/* Return a block, the block-th of its layer, in a pass. */
struct block_pass net_block(const struct net *n, struct acts *a, const struct rows *rows, int layer,
                            int block);
/* Recompute what the backward pass needs of a layer and the forward pass did not keep; a->branch is overwritten. */
void net_forward_again(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                       int layer);
/* Compute normed hidden rows in a->y from ids. */
void net_forward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows);
/* Gather the rows of the embedding that ids name. */
void net_gather_embedding(struct work *r, const struct net *n, const struct acts *a,
                          const struct rows *rows, void *y);
/* Run one part of the forward pass: embedding and first norm; the layers from `from` until `to`. */
void net_forward_embedding(struct work *r, const struct net *n, struct acts *a,
                           const struct rows *rows);
void net_forward_layers(struct work *r, const struct net *n, struct acts *a,
                        const struct rows *rows, int from, int to);

#endif
