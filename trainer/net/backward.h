/* SPDX-License-Identifier: Apache-2.0
 *
 * backward.h: the backward pass of one transformer.
 */
#ifndef NOJIT_TRAINER_BACKWARD_H
#define NOJIT_TRAINER_BACKWARD_H

#include "net/acts.h"

/* Run the backward pass. On entry a->branch holds the gradient of the normed hidden rows. Gradients of gains,
 * biases and embedding are added to the existing ones, those of matrices if r->add says so. */
void net_backward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows);
/* Run one part of the backward pass: the final norm; the layers from `to` - 1 down to `from`; the embedding. */
void net_backward_norm(struct work *r, const struct net *n, struct acts *a);
void net_backward_layers(struct work *r, const struct net *n, struct acts *a,
                         const struct rows *rows, int from, int to);
void net_backward_embedding(struct work *r, const struct net *n, struct acts *a,
                            const struct rows *rows);

#endif
