/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.h: how a model's conversations are written as text.
 */
#ifndef NOJIT_TRAINER_CHAT_H
#define NOJIT_TRAINER_CHAT_H

#include "tokenizer.h"

/* A turn is before_role ROLE after_role CONTENT end after. */
struct chat_format {
    const char *name, *mark; /* a chat template with `mark` in it is of this format */
    const char *before_role, *after_role, *end, *after;
    const char *tokens[3]; /* that the tokenizer must have */
    bool trims;            /* content loses the white space around it */
};

/* The format of the model in DIR, from its chat template if it has one, else from its tokens.
 * Returns 0 or NJ_E_UNSUPPORTED. */
int chat_find(const char *dir, const struct tokenizer *t, const struct chat_format **out);

#endif
