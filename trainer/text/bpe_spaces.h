/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe_spaces.h: tokenizers of the SentencePiece kind (Llama 2, Mistral, Gemma), which write U+2581 for a space
 * and <0x0A> for a
 * byte. Here both are kept as what they stand for, so that text is used as it is.
 */
#ifndef NOJIT_TRAINER_BPE_SPACES_H
#define NOJIT_TRAINER_BPE_SPACES_H

#include "text/bpe.h"

/* Bytes of a token as such a file spells it, into out (as long as text). Returns how many, or -1 for one that
 * no text is
 * made of, because it has a space. */
long spaces_bytes(const char *text, size_t bytes, char *out);
/* The byte that a token such as <0x0A> stands for, or -1. */
int spaces_byte(const char *text, size_t bytes);
/* Copies a text with a space for each U+2581 into out, as long as text; returns the bytes. */
size_t spaces_fold(const char *text, size_t bytes, char *out);
/* Whether a token has a space behind another character, so that words cannot be cut before spaces. */
bool spaces_within(const char *text, size_t bytes);

#endif
