/* SPDX-License-Identifier: Apache-2.0
 *
 * activation.h: the activations of a gated MLP. The number is the value of axis ACT in the key of a kernel. Ops whose
 * ACT lacks 0 leave SiLU to ops of their own (swiglu_*).
 */
#ifndef NOJIT_ACTIVATION_H
#define NOJIT_ACTIVATION_H

enum nj_activation { NJ_SILU, NJ_GELU, NJ_GELU_TANH };

#endif
