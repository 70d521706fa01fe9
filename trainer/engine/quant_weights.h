/* SPDX-License-Identifier: Apache-2.0
 *
 * quant_weights.h: the teacher's matrices, as they lie in their file.
 */
#ifndef NOJIT_TRAINER_QUANT_WEIGHTS_H
#define NOJIT_TRAINER_QUANT_WEIGHTS_H

#include "engine/engine_struct.h"

/* Sends the matrices of a model to the device. A block without a finite scale is refused. */
int quant_load(struct engine *e, const char *path);

#endif
