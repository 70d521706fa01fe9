/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_weights.h: the teacher's matrices as quantized blocks.
 */
#ifndef NOJIT_TRAINER_QUANT_WEIGHTS_H
#define NOJIT_TRAINER_QUANT_WEIGHTS_H

#include "base/tensor_type.h"
#include "weights/loading.h"

/* Fill in how a tensor is loaded to its rows of a matrix, in the type that those are kept in. Values that are not
 * finite are refused. */
void quant_item(const struct matrix *m, int row, const struct tensor *t, struct load_item *out);

#endif
