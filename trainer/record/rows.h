/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.h: a file of rows {"step": N, ...} in a run's folder, which a resumed run continues. What it
 * cuts off there is appended to FILE.old first.
 */
#ifndef NOJIT_TRAINER_ROWS_H
#define NOJIT_TRAINER_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* In place of the step that a run goes on from: there must be no file; all rows are cut off. */
enum { ROWS_NEW = -2, ROWS_NONE = -1 };

struct rows_done {
    int64_t cut;     /* lines that went to FILE.old */
    int64_t missing; /* steps up to the one gone on from, of which there is no row */
};

/* Opens the file to append rows. They are cut off at the first one of a step after `resumed`, or that is
 * not whole; kept, if not NULL, sees those that stay. file NULL: cuts only, where the file is there. */
int rows_open(const char *path, int64_t resumed, void (*kept)(void *user, const char *row),
              void *user, struct rows_done *done, FILE **file);
/* What users are to hear of it, or "". */
const char *rows_text(const char *path, const struct rows_done *done, char *out, size_t bytes);

#endif
