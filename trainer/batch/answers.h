/* SPDX-License-Identifier: Apache-2.0
 *
 * answers.h: the answers of a model to prompts, as rows to train on.
 */
#ifndef NOJIT_TRAINER_ANSWERS_H
#define NOJIT_TRAINER_ANSWERS_H

#include "batch/batch.h"

/* An answer in arrays of the caller's, of at least one token each. */
struct answer {
    /* teacher: ids that it reads in place of the prompt */
    const int32_t *prompt, *teacher, *generated;
    int prompt_count, teacher_count, generated_count;
};

/* Arrays that rows of answers have. */
enum { ANSWER_ARRAYS = USE_FORWARD | USE_STEP | USE_TEACHER };
/* Make rows of S positions, each answer with its prompt a whole document of its own. Tokens of answers have a loss,
 * tokens of prompts have none. There are as few rows as best-fit decreasing finds. NJ_E_ARG if an answer with its
 * prompt, or with the teacher's, has more than S + 1 tokens. The caller frees the rows (batch_free()). */
int answer_rows_make(const struct answer *answers, size_t count, int S, struct batch *out);
/* Write rows into a file and read them back, bit for bit. A file that does not hold at most `most` whole rows of S
 * positions, with ids below vocab_size, is refused. */
int answer_rows_write(const struct batch *b, const char *path);
int answer_rows_read(const char *path, int S, int64_t most, int vocab_size, struct batch *out);

#endif
