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

/* Positions of such texts behind which logits are wanted. */
struct logits_batch {
    bool teacher; /* its logits, not the student's; it reads what the student does */
    const int32_t *ids, *pos, *doc_start;
    const int32_t *at; /* [count] */
    float *const *to;  /* [count] where the logits of each go, one for each common token */
    int count;         /* at most B x S */
};
int engine_logits(struct engine *e, const struct logits_batch *b);

/* The first `count` rows of [rows, ld] on the device, of which the common tokens go to `to`. */
void logits_to_host(struct work *r, const struct engine *e, const char *logits, int count,
                    float *const *to);

#endif
