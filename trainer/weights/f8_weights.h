/* SPDX-License-Identifier: Apache-2.0
 *
 * f8_weights.h: the teacher's matrices, quantised to e4m3.
 */
#ifndef NOJIT_TRAINER_F8_WEIGHTS_H
#define NOJIT_TRAINER_F8_WEIGHTS_H

#include "weights/loading.h"

/* Fill in the way of a tensor to its rows of a matrix: as T, in pieces of whole rows, which the device quantizes, or
 * which stay T. */
void f8_item(const struct matrix *m, int row, const struct tensor *t, struct load_item *out);
void f8_refused_item(const struct matrix *m, int row, const struct tensor *t,
                     struct load_item *out);
/* *name: first of its tensors with a row that has no finite scale, or NULL; of a teacher that ranks share out only
 * those of the ends, as its layers are not here. */
int f8_scan(struct engine *e, const char **name);
/* Refuses a layer with such a one, when it has been read. */
int f8_check(struct engine *e, const char *dir, int layer);

#endif
