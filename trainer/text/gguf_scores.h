/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_scores.h: the vocabulary that llama.cpp calls llama: SentencePiece's BPE without a list
 * of merges. Of the neighbors that together make a token, those whose token has the best score
 * are merged first, the leftmost of those first.
 */
#ifndef NOJIT_TRAINER_GGUF_SCORES_H
#define NOJIT_TRAINER_GGUF_SCORES_H

#include "formats/gguf.h"
#include "text/bpe.h"

#include <jansson.h>
#include <stdbool.h>

/* Append the merges that the scores amount to, best first, as transformers lists them. vocab: id
 * by text; normal: whether each of the tokens is an ordinary one, which merges produce. */
int gguf_scores_merges(const struct gguf *g, json_t *vocab, const bool *normal, size_t tokens,
                       json_t *merges);
/* Rank the merges of a tokenizer that was read from such a list by their scores alone; equal
 * scores get equal ranks. */
int gguf_scores_rank(const struct gguf *g, struct bpe *b);
/* Make its normalizer and decoder as a tokenizer.json has them; prefix: texts get a space in
 * front. */
json_t *gguf_scores_normalizer(bool prefix);
json_t *gguf_scores_decoder(bool prefix);

#endif
