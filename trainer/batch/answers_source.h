/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_source.h: batches in which answers of the student take the place of some rows of another source.
 */
#ifndef NOJIT_TRAINER_ANSWERS_SOURCE_H
#define NOJIT_TRAINER_ANSWERS_SOURCE_H

#include "batch/source.h"

#include <stdbool.h>

struct answers_source;
/* Let *s be batches of B x S, in which the rows that are no answers come from what *s was. Where this fails *s stays.
 * teacher_context: batches say what the teacher reads, which may be something else. */
int answers_source_open(struct batch_source **s, int B, int S, bool teacher_context,
                        struct answers_source **out);
/* Set what of the `count` rows that come next is an answer: where `own` says so these rows, one after the other, then
 * empty ones. Both stay the caller's, until so many rows are past. */
void answers_source_put(struct answers_source *a, const struct batch *rows,
                        const unsigned char *own, int64_t count);

#endif
