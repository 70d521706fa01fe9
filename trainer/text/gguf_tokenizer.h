/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_tokenizer.h: tokenizers in the metadata of GGUF files, both ways. What is read becomes the tokenizer.json
 * that Hugging Face would have for it, so there is one reader; docs/formats.md has the correspondence.
 */
#ifndef NOJIT_TRAINER_GGUF_TOKENIZER_H
#define NOJIT_TRAINER_GGUF_TOKENIZER_H

#include "formats/gguf.h"
#include "formats/gguf_write.h"
#include "text/tokenizer.h"

#include <jansson.h>

/* Whether the file has one; llama.cpp's no_vocab says that it has not. */
bool gguf_tokenizer_is(const struct gguf *g);
/* *eos: tokenizer.ggml.eos_token_id, or -1. A tokenizer of another kind is NJ_E_UNSUPPORTED, damaged metadata
 * NJ_E_FORMAT. */
int gguf_tokenizer_read(const struct gguf *g, struct bpe **out, int *eos);
/* Its tokenizer.json and tokenizer_config.json. */
int gguf_tokenizer_json(const struct gguf *g, json_t **tokenizer, json_t **config);
/* Writes these two into dir, as transformers reads them; nothing, where the file has no tokenizer. */
int gguf_tokenizer_copy(const char *path, const char *dir);
/* Refuses what that would refuse. */
int gguf_tokenizer_check(const char *path);

/* Refuses one that GGUF files, or llama.cpp, cannot have. */
int gguf_check_tokenizer(const struct tokenizer *t, int vocab_size);
/* Puts the tokenizer of the model in t->dir, with its chat template, as llama.cpp's converter does. Ids up to
 * vocab_size that no token has become padding. Bytes become a vocabulary without merges. */
int gguf_put_tokenizer(struct gguf_writer *w, const struct tokenizer *t, int vocab_size);

#endif
