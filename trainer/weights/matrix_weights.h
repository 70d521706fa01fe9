/* SPDX-License-Identifier: Apache-2.0
 *
 * matrix_weights.h: loads tensors to matrices that lie in no arena.
 */
#ifndef NOJIT_TRAINER_MATRIX_WEIGHTS_H
#define NOJIT_TRAINER_MATRIX_WEIGHTS_H

#include "weights/loading.h"

/* Fill in how a tensor of a model is loaded (weights_load()), by the format of its matrix. Return false if it is no
 * matrix, or one of the arena. */
bool matrix_item(const struct net *n, size_t spec, const struct tensor *t, struct load_item *out);

#endif
