/* SPDX-License-Identifier: Apache-2.0
 *
 * stop_text.h: texts that end a model's text. One may span several tokens; the text ends before it.
 */
#ifndef NOJIT_TRAINER_STOP_TEXT_H
#define NOJIT_TRAINER_STOP_TEXT_H

#include "data/pool.h"
#include "text/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>

struct stop_texts {
    const char *const *at;
    size_t count;
};

/* Return where `stop` first occurs in a text of which the first `seen` bytes have been searched; NULL: nowhere. */
const char *stop_find(const struct pool *text, size_t seen, const char *stop, size_t bytes);

/* The text that a model writes, up to the text that ends it. */
struct stopped_text {
    struct pool text;
    const char *by; /* text that ended it, which is cut off; NULL: none yet */
};
/* Add a token's text; then the earliest of the texts that end it counts; false without memory. */
bool stop_add(const struct stop_texts *s, struct stopped_text *t, const char *text, size_t bytes);
/* Add the texts of tokens up to the one that ends it; *count becomes the number of those. False without memory. */
bool stop_add_tokens(const struct stop_texts *s, struct stopped_text *t, const struct tokenizer *k,
                     const int32_t *ids, int *count);
/* Return how much of the text no later token can take back. */
size_t stop_sure(const struct stop_texts *s, const struct stopped_text *t);

#endif
