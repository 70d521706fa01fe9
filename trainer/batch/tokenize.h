/* SPDX-License-Identifier: Apache-2.0
 *
 * tokenize.h: encoding of text files into one token file.
 */
#ifndef NOJIT_TRAINER_TOKENIZE_H
#define NOJIT_TRAINER_TOKENIZE_H

#include "batch/data.h"

struct tokenized {
    size_t files;
    int64_t tokens, without_loss;
    double bytes; /* number of bytes that were read */
    struct passed_over passed;
    struct row_notes notes;
};

/* Find the number of bytes of all files that the paths name. */
int tokenize_bytes(const char *const *paths, size_t count, const struct split_choice *split,
                   double *bytes);
/* Write an LLM.Q token file, version 2, that appears whole or not at all; it must not exist. */
int tokenize(const char *const *paths, size_t count, const struct row_rules *rules,
             const struct split_choice *split, const struct tokenizer *t, const char *out,
             struct tokenized *done);

#endif
