/* SPDX-License-Identifier: Apache-2.0
 *
 * activation.h: the activations of a gated feed-forward block, by the number that a key has for one
 * (axis ACT). Where its ops have no 0, SiLU has ops of its own, swiglu_*.
 */
#ifndef NOJIT_ACTIVATION_H
#define NOJIT_ACTIVATION_H

enum nj_activation { NJ_SILU, NJ_GELU, NJ_GELU_TANH };

#endif
