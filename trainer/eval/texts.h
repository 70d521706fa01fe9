/* SPDX-License-Identifier: Apache-2.0
 *
 * texts.h: prompts of a file, continued many at a time.
 */
#ifndef NOJIT_TRAINER_TEXTS_H
#define NOJIT_TRAINER_TEXTS_H

#include <stdio.h>

#include "batch/prompts.h"
#include "record/stop_text.h"
#include "run/run.h"
#include "run/run_prompts.h"
#include "text/generation.h"

/* Texts that end what is written, as --stop has them. */
struct stop_texts texts_stop_texts(const struct settings *s);
/* Whether a model takes a text of that many tokens, prompt and answer, and the positions given (--seq-len; 0: none) do;
 * what: "the prompt". */
int texts_check_length(const char *model, const char *what, int64_t needed, int given);
/* Positions of the decoder are tokens of the longest text, which the model or --seq-len may limit. */
int texts_positions(struct run *r, const char *what, int64_t longest);
/* Sets how many of so many texts are written at a time: as many as --batch-size auto finds room for. */
int texts_rows(struct run *r, int64_t texts);
/* Writes --num-return-sequences texts for each prompt to `out`, a JSON object per line, in their order. */
int texts_write(struct run *r, const struct prompts *prompts, FILE *out);

#endif
