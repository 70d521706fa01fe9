/* SPDX-License-Identifier: Apache-2.0
 *
 * task_rows.h: contexts of tasks with their choices, as rows to score.
 */
#ifndef NOJIT_TRAINER_TASK_ROWS_H
#define NOJIT_TRAINER_TASK_ROWS_H

#include "batch/batch.h"
#include "batch/tasks.h"

struct task_rows;

/* Make rows of texts, each a context with a choice. A text has at most `limit` tokens, not counting its last one; a
 * longer one loses its beginning. Rows have `length` positions, more where a text is longer, fewer where one row has
 * room for all texts. */
int task_rows_make(const struct tasks *t, int limit, int length, struct task_rows **out);
void task_rows_free(struct task_rows *r); /* NULL is allowed */
int task_rows_length(const struct task_rows *r);
int64_t task_rows_count(const struct task_rows *r);
int64_t task_rows_cut(const struct task_rows *r); /* number of choices with a shortened context */

/* A batch of rows. */
struct task_batch {
    struct batch text; /* rows of S = task_rows_length() positions, without targets */
    /* Position, token that may follow it, and choice (tasks_choice()) that it belongs to, [B x S] each */
    int32_t *at, *next;
    int64_t *owner;
    int count;       /* number of entries of these three */
    int64_t choices; /* number of choices in the rows */
};
int task_batch_open(const struct task_rows *r, int B, struct task_batch *out);
void task_batch_close(struct task_batch *b);
/* Fill the batch with rows from `first` on, then empty ones. */
void task_batch_fill(const struct task_rows *r, int64_t first, struct task_batch *b);

#endif
