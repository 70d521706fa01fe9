/* SPDX-License-Identifier: Apache-2.0
 *
 * speculate.h: continues prompts by speculative decoding, to count accepted tokens.
 */
#ifndef NOJIT_TRAINER_SPECULATE_H
#define NOJIT_TRAINER_SPECULATE_H

#include <stdint.h>

#include "decode/decode.h"

/* Results of speculative decoding. A turn is a draft of the student and a pass of the teacher, which verifies
 * it. */
enum { SPECULATE_DRAFT_MOST = 16 };
struct speculate_result {
    int64_t texts;
    int64_t turns[SPECULATE_DRAFT_MOST + 1]; /* number of turns by number of tokens drafted */
    int64_t drafted, tested; /* number of tokens drafted, and of those not behind a rejected one */
    int64_t accepted;
    int64_t tokens; /* number of tokens of the texts */
    /* Sums over the tested tokens: of their probabilities of acceptance, sum_v min(p_v, q_v), and of the
     * variances. */
    double expected, variance;
};
/* Continue prompts as the teacher alone would, at temperature 1, with drafts of at most `draft` tokens, B texts at
 * a time, each in S positions. Only the seed of io->how counts. */
int engine_speculate(struct engine *e, const struct decode_io *io, int draft,
                     struct speculate_result *out);

#endif
