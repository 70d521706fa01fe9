/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.h: how a model's conversations are written as text.
 */
#ifndef NOJIT_TRAINER_CHAT_H
#define NOJIT_TRAINER_CHAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "text/tokenizer.h"

/* A turn is before_role ROLE after_role CONTENT end after. */
struct chat_format {
    const char *name, *mark; /* a chat template with `mark` in it is of this format */
    const char *before_role, *after_role, *end, *after;
    const char *tokens[3]; /* that the tokenizer must have */
    bool trims;            /* content loses the white space around it */
};

/* A format, with what the model's template adds to it. */
struct chat {
    const struct chat_format *format;
    char *system;        /* content of the system turn of a conversation without one; NULL: none */
    const char *opening; /* stands before the content of a first system turn, or "" */
    bool thinks;         /* Qwen3's: the last answer has a think block, earlier ones lose theirs */
    const char *before_answer; /* of a generation prompt, after the assistant's header, or "" */
};

/* The template of the model in DIR, or in a GGUF file: a text, or a list of named ones; NULL without one. */
int chat_template(const char *dir, json_t **out);
/* The format of that model, from its chat template if it has one, else from its tokens.
 * Returns 0, NJ_E_NOMEM or NJ_E_UNSUPPORTED; chat_free() in each case. */
int chat_find(const char *dir, const struct tokenizer *t, struct chat *out);
/* Refuses a tokenizer without a token that ends a whole conversation, as data for training have it. */
int chat_check_end(const struct chat *c, const struct tokenizer *t);
void chat_free(struct chat *c);

struct chat_text {
    const char *text;
    size_t bytes;
};

/* Splits what an assistant says into what it thinks, between the marks of a think block, and what
 * comes after, as Qwen3's template does; without such a block *thought is empty. */
void chat_split(struct chat_text *content, struct chat_text *thought);
/* The text without line feeds at its start and, with both, at its end. */
struct chat_text chat_strip(struct chat_text t, bool both);

#endif
