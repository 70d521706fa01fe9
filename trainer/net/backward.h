/* SPDX-License-Identifier: Apache-2.0
 *
 * backward.h: one transformer, backward.
 */
#ifndef NOJIT_TRAINER_BACKWARD_H
#define NOJIT_TRAINER_BACKWARD_H

#include "net/acts.h"

/* On entry a->branch holds the gradient of the normed hidden rows. Gradients of gains,
 * biases and embedding are added to what is there, those of matrices are as r->add says. */
void net_backward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows);
/* The same in parts: final norm; layers, from the last one to the first, of which those from `from` until `to` are done
 * here; embedding. */
void net_backward_norm(struct work *r, const struct net *n, struct acts *a);
void net_backward_layers(struct work *r, const struct net *n, struct acts *a,
                         const struct rows *rows, int from, int to);
void net_backward_embedding(struct work *r, const struct net *n, struct acts *a,
                            const struct rows *rows);

#endif
