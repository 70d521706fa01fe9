/* SPDX-License-Identifier: Apache-2.0
 *
 * answers_source.h: batches in which answers of the student take the place of some rows of another source.
 */
#ifndef NOJIT_TRAINER_ANSWERS_SOURCE_H
#define NOJIT_TRAINER_ANSWERS_SOURCE_H

#include "batch/source.h"

#include <stdbool.h>

struct answers_source;
/* Replace *s by batches of B x S, in which the rows that are not answers come from the previous *s. On failure *s is
 * unchanged. teacher_context: batches say what the teacher reads, which may differ from what the student reads. */
int answers_source_open(struct batch_source **s, int B, int S, bool teacher_context,
                        struct answers_source **out);
/* Set which of the `count` rows that come next are answers: where `own` is set, these rows, one after the other, then
 * empty ones. Both arrays remain the caller's until that many rows have passed. */
void answers_source_put(struct answers_source *a, const struct batch *rows,
                        const unsigned char *own, int64_t count);

#endif
