/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_weights.h: the teacher's matrices, as blocks.
 */
#ifndef NOJIT_TRAINER_QUANT_WEIGHTS_H
#define NOJIT_TRAINER_QUANT_WEIGHTS_H

#include "base/tensor_type.h"
#include "weights/loading.h"

/* Fill in the way of a tensor to its rows of a matrix, in the type that those are kept in. What is not finite is
 * refused. */
void quant_item(const struct matrix *m, int row, const struct tensor *t, struct load_item *out);
/* Whether the scales of blocks are, and so all elements. */
bool quant_finite(enum nj_tensor_type type, const void *blocks, size_t bytes);

#endif
