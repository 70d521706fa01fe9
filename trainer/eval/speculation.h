/* SPDX-License-Identifier: Apache-2.0
 *
 * speculation.h: `nojit eval --acceptance --prompts`: speculative decoding of prompts, measured.
 */
#ifndef NOJIT_TRAINER_SPECULATION_H
#define NOJIT_TRAINER_SPECULATION_H

#include "run/run.h"

/* Of drafts of so many tokens, each accepted with the same probability on its own: what a verification
 * yields on average, its own token counted, 1 + a + ... + a^k = (1 - a^(k+1)) / (1 - a) (Leviathan et al. 2023,
 * arXiv:2211.17192, equation 1). */
double tokens_per_verification(double acceptance, int draft);
/* Continues --prompts with the student's drafts and prints what the teacher accepted. */
int run_speculation(struct run *r);

#endif
