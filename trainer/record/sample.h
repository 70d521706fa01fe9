/* SPDX-License-Identifier: Apache-2.0
 *
 * sample.h: a text continued by a model: what `nojit generate` prints and what a
 * training run shows of its student.
 */
#ifndef NOJIT_TRAINER_SAMPLE_H
#define NOJIT_TRAINER_SAMPLE_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/engine.h"
#include "record/stop_text.h"
#include "text/generation.h"
#include "text/tokenizer.h"

struct sampling {
    struct engine *engine;
    const struct tokenizer *tokenizer;
    const struct generation *ends; /* tokens that end a text */
    struct decode_sampling how;
    struct stop_texts stops; /* texts that do */
};

/* The ids of a prompt after the token that begins texts; those of an empty one where no token does:
 * the token that ends them. *ids is malloc()'d, on failure too, and starts as NULL. */
int sample_encode(const struct tokenizer *t, const char *prompt, int32_t **ids, size_t *count);

/* The text of tokens; NULL without memory. */
json_t *sample_text(const struct tokenizer *t, const int32_t *ids, int count);
struct sample_said {
    json_t *text; /* NULL on failure */
    bool cut;     /* the text had not ended */
};
/* Writes what follows the prompt's ids to `out`, flushed as it comes: up to `tokens` of them,
 * fewer if the text ends. said: what was written, unless it is NULL. */
int sample_continue(const struct sampling *s, const int32_t *prompt, int64_t count, int64_t tokens,
                    FILE *out, struct sample_said *said);

#endif
