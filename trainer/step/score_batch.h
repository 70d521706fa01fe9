/* SPDX-License-Identifier: Apache-2.0
 *
 * score_batch.h: texts of which given tokens are scored.
 */
#ifndef NOJIT_TRAINER_SCORE_BATCH_H
#define NOJIT_TRAINER_SCORE_BATCH_H

#include <stdint.h>

/* Texts of which some tokens are scored: B x S positions, as of struct batch, and the scored ones; a position may come
 * several times, with other tokens. */
struct score_batch {
    const int32_t *ids, *pos, *doc_start;
    const int32_t *at, *target; /* [count] a position, and a token that may follow it */
    int count;                  /* at most B x S */
};

#endif
