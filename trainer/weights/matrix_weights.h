/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix_weights.h: tensors on their way to matrices that lie in no arena.
 */
#ifndef NOJIT_TRAINER_MATRIX_WEIGHTS_H
#define NOJIT_TRAINER_MATRIX_WEIGHTS_H

#include "weights/loading.h"

/* Fill in the way of a tensor of the teacher (weights_load()), by the format of its matrix. Return false where it is
 * no matrix, or one of the arena. */
bool matrix_item(struct engine *e, size_t spec, const struct tensor *t, struct load_item *out);

#endif
