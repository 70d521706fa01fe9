/* SPDX-License-Identifier: Apache-2.0
 *
 * answers.h: what a model has answered to prompts, as rows to train on.
 */
#ifndef NOJIT_TRAINER_ANSWERS_H
#define NOJIT_TRAINER_ANSWERS_H

#include <stddef.h>
#include <stdint.h>

/* All in arrays of the caller's; at least one token each. */
struct answer {
    const int32_t *prompt, *teacher, *said; /* teacher: what it reads in place of the prompt */
    int prompt_count, teacher_count, said_count;
};

/* Rows of S positions, each answer with its prompt a document of its own that is whole. Tokens of answers have a loss,
 * those of prompts have none. */
struct answer_rows {
    int S;
    int64_t rows, valid; /* valid: targets of all */
    int32_t *arrays;     /* ROW_ARRAYS of rows x S each */
};
/* Of rows: ids, target, pos, doc_start; then what the teacher reads, where that is something else: ids, pos, doc_start,
 * and, at each target of the student, in which position of the same row the teacher predicts it. */
enum row_array {
    ROW_IDS,
    ROW_TARGET,
    ROW_POS,
    ROW_DOC_START,
    ROW_PLAIN, /* how many there are without a teacher's */
    ROW_TEACHER_IDS = ROW_PLAIN,
    ROW_TEACHER_POS,
    ROW_TEACHER_DOC_START,
    ROW_TEACHER_AT,
    ROW_ARRAYS
};

/* As few rows as best-fit decreasing finds. NJ_E_ARG where an answer and its prompt, or the teacher's, have more than
 * S + 1 tokens. */
int answer_rows_make(const struct answer *answers, size_t count, int S, struct answer_rows *out);
void answer_rows_free(struct answer_rows *a);
/* Into a file and back, bit for bit; one that does not hold at most `most` whole rows of S positions, with ids below
 * vocab_size, is refused. */
int answer_rows_write(const struct answer_rows *a, const char *path);
int answer_rows_read(const char *path, int S, int64_t most, int vocab_size,
                     struct answer_rows *out);

/* Ends a row of which `at` positions are filled; row: its first element of ROW_IDS, each further array n elements
 * behind. What fills it is a document of its own. */
void row_put_padding(int32_t *row, size_t n, int at, int S);
/* The teacher reads what the student reads. */
void row_put_teacher(int32_t *row, size_t n, int S);

#endif
