/* SPDX-License-Identifier: Apache-2.0
 *
 * activation.h: the activations of a gated feed-forward block, by the number that a key has for one
 * (axis ACT). SiLU has ops of its own, swiglu_*.
 */
#ifndef NOJIT_ACTIVATION_H
#define NOJIT_ACTIVATION_H

enum nj_activation { NJ_SILU, NJ_GELU, NJ_GELU_TANH };

#endif
