/* SPDX-License-Identifier: Apache-2.0
 *
 * run_prompts.h: prompts of a run, and what ends an answer to one.
 */
#ifndef NOJIT_TRAINER_RUN_PROMPTS_H
#define NOJIT_TRAINER_RUN_PROMPTS_H

#include "batch/prompts.h"
#include "run/run.h"

/* What ends a text of the model, by its folder and its tokenizer: r->ends. */
int run_stops(struct run *r);
/* Opens --prompts, and says what of folders is passed over; *o has the rest. */
int run_open_prompts(struct run *r, struct prompts_options *o, struct prompts **out);

#endif
