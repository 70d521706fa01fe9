/* SPDX-License-Identifier: Apache-2.0
 *
 * row_logits.h: logits behind given positions of texts.
 */
#ifndef NOJIT_TRAINER_ROW_LOGITS_H
#define NOJIT_TRAINER_ROW_LOGITS_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct work;

/* Texts, and the positions in them behind which logits are wanted. */
struct logits_batch {
    bool teacher; /* logits are the teacher's, not the student's; it reads the student's input */
    const int32_t *ids, *pos, *doc_start;
    const int32_t *at; /* [count] positions */
    float *const *to;  /* [count] places of the logits, one logit for each common token */
    int count;         /* number of positions, at most B x S */
};
int engine_logits(struct engine *e, const struct logits_batch *b);

/* Copy the first `count` rows of [rows, ld] on the device to `to`, the common tokens of each. */
void logits_to_host(struct work *r, const struct engine *e, const char *logits, int count,
                    float *const *to);

#endif
