/* SPDX-License-Identifier: Apache-2.0
 *
 * score_batch.h: texts in which given tokens are scored.
 */
#ifndef NOJIT_TRAINER_SCORE_BATCH_H
#define NOJIT_TRAINER_SCORE_BATCH_H

#include <stdint.h>

/* Texts of B x S positions, as in struct batch, and the tokens to be scored; a position may come several times,
 * with other tokens. */
struct score_batch {
    const int32_t *ids, *pos, *doc_start;
    const int32_t *at, *target; /* [count] positions, and tokens that may follow them */
    int count;                  /* number of scores, at most B x S */
};

#endif
