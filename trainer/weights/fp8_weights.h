/* SPDX-License-Identifier: Apache-2.0
 *
 * fp8_weights.h: the teacher's matrices, quantized to E4M3.
 */
#ifndef NOJIT_TRAINER_FP8_WEIGHTS_H
#define NOJIT_TRAINER_FP8_WEIGHTS_H

#include "weights/loading.h"

/* Fill in how a tensor is loaded to its rows of a matrix: as T, in pieces of whole rows, which the device quantizes
 * (fp8_item), or which stay T (fp8_refused_item). */
void fp8_item(const struct matrix *m, int row, const struct tensor *t, struct load_item *out);
void fp8_refused_item(const struct matrix *m, int row, const struct tensor *t,
                      struct load_item *out);
/* Set *name to the first tensor of E4M3 matrices with a row that has no finite scale, or NULL; of a teacher that
 * ranks share only head and embedding are searched, as its layers are not here. */
int fp8_scan(struct engine *e, const char **name);
/* Refuse a layer with such a tensor, after it has been read. */
int fp8_check(struct engine *e, const char *dir, int layer);

#endif
