/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_weights.h: the teacher's matrices, as blocks.
 */
#ifndef NOJIT_TRAINER_QUANT_WEIGHTS_H
#define NOJIT_TRAINER_QUANT_WEIGHTS_H

#include "engine/engine_struct.h"
#include "tensor_type.h"

/* Sends the matrices of a model to the device, in the types of the options. What is not finite is refused. */
int quant_load(struct engine *e, const char *path);
/* Whether the scales of blocks are, and so all elements. */
bool quant_finite(enum nj_tensor_type type, const void *blocks, size_t bytes);

#endif
