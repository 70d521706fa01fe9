/* SPDX-License-Identifier: Apache-2.0
 *
 * activation.h: the gated activation of a net's MLP. Which kernels compute it follows from
 * hidden_act alone.
 */
#ifndef NOJIT_TRAINER_ACTIVATION_H
#define NOJIT_TRAINER_ACTIVATION_H

#include "net/acts.h"

bool activation_is_silu(const struct net *n);
/* Whether one kernel multiplies with the weights of gate and up and activates. */
bool activation_fused(const struct work *r, const struct net *n);
/* a->act from gate and up. */
void activation_fwd(struct work *r, const struct net *n, struct acts *a, const void *gu);
/* The same as e4m3, in a->x. */
void activation_quantize(struct work *r, const struct net *n, struct acts *a, const void *gu);
/* gu becomes its gradient, and a->dact, the gradient of the activation, the activation. */
void activation_bwd(struct work *r, const struct net *n, struct acts *a, void *gu);
/* The same as e4m3, in a->f8.dgu and a->x. */
void activation_bwd_quantize(struct work *r, const struct net *n, struct acts *a, int layer,
                             void *gu);

#endif
