/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_tokenizer.h: tokenizers in the metadata of GGUF files, read and written. A tokenizer that
 * is read is converted to the tokenizer.json that Hugging Face would have for it, so there is
 * one reader; docs/formats.md has the correspondence.
 */
#ifndef NOJIT_TRAINER_GGUF_TOKENIZER_H
#define NOJIT_TRAINER_GGUF_TOKENIZER_H

#include "formats/gguf.h"
#include "formats/gguf_write.h"
#include "text/tokenizer.h"

#include <jansson.h>

/* Return whether the file has a tokenizer; llama.cpp's no_vocab means that it has none. */
bool gguf_tokenizer_is(const struct gguf *g);
/* Read the tokenizer; eos: tokenizer.ggml.eos_token_id, or -1. A tokenizer of another kind is
 * NJ_E_UNSUPPORTED, damaged metadata NJ_E_FORMAT. */
int gguf_tokenizer_read(const struct gguf *g, struct bpe **out, int *eos);
/* Make its tokenizer.json and tokenizer_config.json. */
int gguf_tokenizer_json(const struct gguf *g, json_t **tokenizer, json_t **config);
/* Write these two files to dir, as transformers reads them; write nothing if the file has no
 * tokenizer. */
int gguf_tokenizer_copy(const char *path, const char *dir);
/* Refuse a file that gguf_tokenizer_copy() would refuse. */
int gguf_tokenizer_check(const char *path);

/* Refuse a tokenizer that GGUF files, or llama.cpp, cannot represent. */
int gguf_check_tokenizer(const struct tokenizer *t, int vocab_size);
/* Write the tokenizer of the model in t->dir, with its chat template, as llama.cpp's converter
 * does. Ids up to vocab_size without a token become padding. The "bytes" tokenizer becomes a
 * vocabulary without merges. */
int gguf_put_tokenizer(struct gguf_writer *w, const struct tokenizer *t, int vocab_size);

#endif
