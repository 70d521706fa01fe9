/* SPDX-License-Identifier: Apache-2.0
 *
 * show_data.h: documents as training reads them, on a screen.
 */
#ifndef NOJIT_TRAINER_SHOW_DATA_H
#define NOJIT_TRAINER_SHOW_DATA_H

#include <stdio.h>

#include "batch/data.h"

/* Writes the first `count` documents, in the order in which rows have them, and where rows of `seq_len` positions end.
 * Tokens that are not trained are dimmed on a terminal, elsewhere they stand in [- and -]. Of a long document the
 * first 2,000 tokens are written, and how many follow. */
int show_data(const struct data *d, const struct tokenizer *t, int seq_len, int64_t count,
              FILE *to);

#endif
