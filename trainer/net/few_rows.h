/* SPDX-License-Identifier: Apache-2.0
 *
 * few_rows.h: a decoder's step of up to 16 sequences.
 */
#ifndef NOJIT_TRAINER_FEW_ROWS_H
#define NOJIT_TRAINER_FEW_ROWS_H

#include "net/acts.h"

/* Return whether there are kernels for so many rows of this net. */
bool few_rows_fit(const struct work *r, const struct net *n, int rows);
/* Compute logits [rows, ld] from ids, their first `vocab` columns. */
void few_rows_step(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                   int vocab, int ld, void *logits);

#endif
