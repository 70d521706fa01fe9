/* SPDX-License-Identifier: Apache-2.0
 *
 * speculate.h: prompts continued speculatively, to count what is accepted.
 */
#ifndef NOJIT_TRAINER_SPECULATE_H
#define NOJIT_TRAINER_SPECULATE_H

#include <stdint.h>

#include "decode/decode.h"

/* What speculative decoding came to. A turn is a draft of the student and a pass of the teacher, which verifies it. */
enum { SPECULATE_DRAFT_MOST = 16 };
struct speculate_result {
    int64_t texts;
    int64_t turns[SPECULATE_DRAFT_MOST + 1]; /* that drafted so many tokens */
    int64_t drafted, tested; /* tokens of drafts; those that were not behind a rejected one */
    int64_t accepted;
    int64_t tokens; /* of the texts */
    /* Over the tested tokens: the sum of the probabilities sum_v min(p_v, q_v) with which each was to be accepted, and
     * of their variances. */
    double expected, variance;
};
/* Continues prompts as the teacher would alone, at temperature 1, with drafts of at most `draft` tokens; B at a time,
 * each in S positions. Of io->how the seed alone counts. */
int engine_speculate(struct engine *e, const struct decode_io *io, int draft,
                     struct speculate_result *out);

#endif
