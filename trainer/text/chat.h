/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.h: how a model's conversations are written as text: by its chat template, which is run.
 */
#ifndef NOJIT_TRAINER_CHAT_H
#define NOJIT_TRAINER_CHAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "template/template.h"
#include "text/tokenizer.h"

struct chat {
    struct template *plain; /* NULL: chat_find() has not been called, or failed */
    struct template *tools; /* takes conversations with tools; NULL: `plain` does */
    json_t *tokens;         /* bos_token and others, as variables of the templates */
};

/* Reads the template of the model in DIR, or in a GGUF file: a text, or a list of named ones; NULL without one. */
int chat_template(const char *dir, json_t **out);
/* Parses that template, or one for ChatML or Llama 3 where there is none and the tokenizer has their tokens.
 * Returns 0, NJ_E_NOMEM, NJ_E_FORMAT or NJ_E_UNSUPPORTED; chat_free() in each case. */
int chat_find(const char *dir, const struct tokenizer *t, struct chat *out);
/* Returns the template that a conversation has, with tools or without. */
const struct template *chat_template_for(const struct chat *c, bool tools);
/* Whether the template of a model, if it has one, writes the date. */
int chat_writes_day(const char *dir, bool *out);
void chat_free(struct chat *c);

#endif
