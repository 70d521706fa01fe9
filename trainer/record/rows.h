/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.h: a file of rows {"step": N, ...} in a run's folder, which a resumed run continues. Rows that it cuts off are
 * appended to FILE.old first.
 */
#ifndef NOJIT_TRAINER_RECORD_ROWS_H
#define NOJIT_TRAINER_RECORD_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Values in place of the step that a run resumes from: there must be no file; all rows are cut off. */
enum { ROWS_NEW = -2, ROWS_NONE = -1 };

struct rows_done {
    int64_t cut;     /* number of lines that went to FILE.old */
    int64_t missing; /* number of steps without a row, up to the step resumed from */
};

/* Open the file to append rows. Rows are cut off from the first one that is of a step after `resumed`, or is not whole;
 * kept, if not NULL, sees those that stay. file NULL: only cut, if the file exists. */
int rows_open(const char *path, int64_t resumed, void (*kept)(void *user, const char *row),
              void *user, struct rows_done *done, FILE **file);
/* Write the sentence for users about it, or "". */
const char *rows_text(const char *path, const struct rows_done *done, char *out, size_t bytes);

#endif
