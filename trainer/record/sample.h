/* SPDX-License-Identifier: Apache-2.0
 *
 * sample.h: a text continued by a model: the output of `nojit generate` and the samples that a training run shows of
 * its student.
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
    struct stop_texts stops; /* texts that end a text */
};

/* Encode a prompt after the token that begins texts; an empty one, where no token begins texts, is the token that ends
 * them. *ids is malloc()'d, on failure too, and starts as NULL. */
int sample_encode(const struct tokenizer *t, const char *prompt, int32_t **ids, size_t *count);

/* Return the text of tokens; NULL without memory. */
json_t *sample_text(const struct tokenizer *t, const int32_t *ids, int count);
struct sample_generated {
    json_t *text; /* text that was written, NULL on failure */
    bool cut;     /* whether the text had not ended */
};
/* Write the continuation of the prompt's ids to `out`, flushed as it comes: up to `tokens` tokens, fewer if the text
 * ends. generated: the text that was written, if not NULL. */
int sample_continue(const struct sampling *s, const int32_t *prompt, int64_t count, int64_t tokens,
                    FILE *out, struct sample_generated *generated);

#endif
