/* SPDX-License-Identifier: Apache-2.0
 *
 * stop_text.h: texts that end what a model writes. One may reach over several tokens; what is written ends before it.
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

/* Returns where `stop` first stands in a text of which the first `seen` bytes have been looked at; NULL: nowhere. */
const char *stop_find(const struct pool *text, size_t seen, const char *stop, size_t bytes);

/* The text that a model writes, up to what ends it. */
struct stopped_text {
    struct pool text;
    const char *by; /* the text that ended it, which is cut off; NULL: none yet */
};
/* Adds a token's text, after which the earliest of the texts that end it counts; false without memory. */
bool stop_add(const struct stop_texts *s, struct stopped_text *t, const char *text, size_t bytes);
/* Adds the texts of tokens up to the one that ends it; *count becomes how many those are. False without memory. */
bool stop_add_tokens(const struct stop_texts *s, struct stopped_text *t, const struct tokenizer *k,
                     const int32_t *ids, int *count);
/* Returns how much of the text no later token can take back. */
size_t stop_sure(const struct stop_texts *s, const struct stopped_text *t);

#endif
