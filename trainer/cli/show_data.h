/* SPDX-License-Identifier: Apache-2.0
 *
 * show_data.h: documents as training reads them, on a screen.
 */
#ifndef NOJIT_TRAINER_SHOW_DATA_H
#define NOJIT_TRAINER_SHOW_DATA_H

#include <stdio.h>

#include "batch/data.h"

/* Write the first `count` documents in the order of the rows, and mark where rows of `seq_len` positions end. Tokens
 * that are not trained are dimmed on a terminal, and enclosed in [- and -] elsewhere. For a long document the first
 * 2,000 tokens are written, and the number of the others. */
int show_data(const struct data *d, const struct tokenizer *t, int seq_len, int64_t count,
              FILE *to);

#endif
