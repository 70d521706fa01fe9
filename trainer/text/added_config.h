/* SPDX-License-Identifier: Apache-2.0
 *
 * added_config.h: the tokens that a folder's other files add to its tokenizer.json.
 */
#ifndef NOJIT_TRAINER_ADDED_CONFIG_H
#define NOJIT_TRAINER_ADDED_CONFIG_H

#include <jansson.h>

/* Appends to added_tokens of a tokenizer.json what transformers adds when it loads the folder: added_tokens_decoder,
 * named and extra special tokens of tokenizer_config.json, else added_tokens.json and special_tokens_map.json.
 * defaults: named tokens where no file has them, or NULL. Those that are new are noted. Returns 0, NJ_E_IO,
 * NJ_E_FORMAT or NJ_E_NOMEM. */
int added_config(const char *dir, json_t *tokenizer, const json_t *defaults);

#endif
