/* SPDX-License-Identifier: Apache-2.0
 *
 * run_prompts.h: prompts of a run, and what ends an answer to one.
 */
#ifndef NOJIT_TRAINER_RUN_PROMPTS_H
#define NOJIT_TRAINER_RUN_PROMPTS_H

#include "batch/prompts.h"
#include "run/run.h"

/* Find the tokens that end a text, from the model's folder and tokenizer, and keep them in r->ends. */
int run_stops(struct run *r);
/* Open --prompts, and print which files of folders are skipped; *o has the other options. */
int run_open_prompts(struct run *r, struct prompts_options *o, struct prompts **out);

#endif
