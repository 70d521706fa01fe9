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

/* Return the texts of --stop, which end a text. */
struct stop_texts texts_stop_texts(const struct settings *s);
/* Check that a model, and --seq-len if it is given (0: it is not), have room for that many tokens of prompt and
 * answer; what: "the prompt". */
int texts_check_length(const char *model, const char *what, int64_t needed, int given);
/* Set the positions of the decoder to the tokens of the longest text, which the model or --seq-len may limit. */
int texts_positions(struct run *r, const char *what, int64_t longest);
/* Set how many of `texts` texts are written at a time: as many as --batch-size auto finds room for. */
int texts_rows(struct run *r, int64_t texts);
/* Write --num-return-sequences texts for each prompt to `out`, a JSON object per line, in their order. */
int texts_write(struct run *r, const struct prompts *prompts, FILE *out);

#endif
