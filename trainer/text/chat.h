/* SPDX-License-Identifier: Apache-2.0
 *
 * chat.h: a model's conversations as text, written by its chat template, which is executed.
 */
#ifndef NOJIT_TRAINER_CHAT_H
#define NOJIT_TRAINER_CHAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "template/template.h"
#include "text/tokenizer.h"

struct chat {
    struct template *plain; /* template; NULL: chat_find() has not been called, or failed */
    struct template *tools; /* template for conversations with tools; NULL: `plain` is used */
    json_t *tokens;         /* bos_token and others, as variables of the templates */
};

/* Read the template of the model in DIR, or in a GGUF file: a string, or a list of named ones;
 * NULL if there is none. */
int chat_template(const char *dir, json_t **out);
/* Parse that template, or one for ChatML or Llama 3 if there is none and the tokenizer has their
 * tokens. Return 0, NJ_E_NOMEM, NJ_E_FORMAT or NJ_E_UNSUPPORTED; call chat_free() in each case. */
int chat_find(const char *dir, const struct tokenizer *t, struct chat *out);
/* Return the template for a conversation, with tools or without. */
const struct template *chat_template_for(const struct chat *c, bool tools);
/* Set *out to whether the template of a model, if it has one, writes the date. */
int chat_writes_day(const char *dir, bool *out);
void chat_free(struct chat *c);

#endif
