/* SPDX-License-Identifier: Apache-2.0
 *
 * added_config.h: tokens that a folder's other files add to its tokenizer.json.
 */
#ifndef NOJIT_TRAINER_ADDED_CONFIG_H
#define NOJIT_TRAINER_ADDED_CONFIG_H

#include <jansson.h>

/* Append to added_tokens of a tokenizer.json the tokens that transformers adds when it loads the
 * folder: added_tokens_decoder, named and extra special tokens of tokenizer_config.json, else
 * added_tokens.json and special_tokens_map.json. defaults: named tokens to use if no file has
 * them, or NULL. New tokens are noted (io/notes.h). Return 0, NJ_E_IO, NJ_E_FORMAT or
 * NJ_E_NOMEM. */
int added_config(const char *dir, json_t *tokenizer, const json_t *defaults);

#endif
