/* SPDX-License-Identifier: Apache-2.0
 *
 * f8_weights.h: the teacher's matrices, quantised to e4m3.
 */
#ifndef NOJIT_TRAINER_F8_WEIGHTS_H
#define NOJIT_TRAINER_F8_WEIGHTS_H

#include "engine/engine_struct.h"

/* Quantises the matrices of the teacher's folder, on the device. */
int f8_load(struct engine *e, const char *dir);
/* *name: first of its tensors with a row that has no finite scale, or NULL. */
int f8_scan(struct engine *e, const char **name);
/* Refuses such a one. */
int f8_check(struct engine *e, const char *dir);

#endif
