/* SPDX-License-Identifier: Apache-2.0
 *
 * vocab_files.h: tokenizers saved as vocab.json and merges.txt, without tokenizer.json, as
 * GPT-2's and Qwen2's were.
 */
#ifndef NOJIT_TRAINER_VOCAB_FILES_H
#define NOJIT_TRAINER_VOCAB_FILES_H

#include <jansson.h>
#include <stdbool.h>

/* Return whether a folder has both files, and no tokenizer.json. */
bool vocab_files_are(const char *dir);
/* Make the tokenizer.json that AutoTokenizer of transformers makes from them, without the tokens
 * that added_config() appends; defaults: the special tokens of its class, by name. An unknown
 * class is NJ_E_UNSUPPORTED. */
int vocab_files_json(const char *dir, json_t **tokenizer, json_t **defaults);

#endif
