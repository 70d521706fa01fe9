/* SPDX-License-Identifier: Apache-2.0
 *
 * speculation.h: `nojit eval --acceptance --prompts`: speculative decoding of prompts, measured.
 */
#ifndef NOJIT_TRAINER_SPECULATION_H
#define NOJIT_TRAINER_SPECULATION_H

#include "run/run.h"

/* Return the average number of tokens that a verification yields, its own token counted, for drafts of `draft`
 * tokens that are accepted independently with the same probability: 1 + a + ... + a^k = (1 - a^(k+1)) / (1 - a)
 * (Leviathan et al. 2023, arXiv:2211.17192, equation 1). */
double tokens_per_verification(double acceptance, int draft);
/* Continue --prompts with the student's drafts and print what the teacher accepted. */
int run_speculation(struct run *r);

#endif
