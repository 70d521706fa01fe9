/* SPDX-License-Identifier: Apache-2.0
 *
 * task_rows.h: contexts of tasks with their choices, as rows to score.
 */
#ifndef NOJIT_TRAINER_TASK_ROWS_H
#define NOJIT_TRAINER_TASK_ROWS_H

#include "batch/batch.h"
#include "batch/tasks.h"

struct task_rows;

/* A context with a choice is a text of `limit` tokens at most, its last one not counted; a longer one loses its
 * beginning. Rows have `length` positions, more where a text is longer, fewer where all texts have room in one. */
int task_rows_make(const struct tasks *t, int limit, int length, struct task_rows **out);
void task_rows_free(struct task_rows *r); /* NULL is fine */
int task_rows_length(const struct task_rows *r);
int64_t task_rows_count(const struct task_rows *r);
int64_t task_rows_cut(const struct task_rows *r); /* choices whose context has lost its beginning */

/* Rows of a batch. */
struct task_batch {
    struct batch text; /* of S = task_rows_length() positions, without targets */
    /* [B x S] A position, a token that may follow it, and the choice (tasks_choice()) that it belongs to */
    int32_t *at, *next;
    int64_t *owner;
    int count;       /* of these three */
    int64_t choices; /* that the rows have */
};
int task_batch_open(const struct task_rows *r, int B, struct task_batch *out);
void task_batch_close(struct task_batch *b);
/* Rows from `first` on, empty ones behind the last. */
void task_batch_fill(const struct task_rows *r, int64_t first, struct task_batch *b);

#endif
