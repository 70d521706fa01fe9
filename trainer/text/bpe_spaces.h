/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe_spaces.h: tokenizers of the SentencePiece kind (Llama 2, Mistral, Gemma), which write
 * U+2581 for a space and <0x0A> for a byte. Here both are stored as the characters that they
 * stand for, so that text is used unchanged.
 */
#ifndef NOJIT_TRAINER_BPE_SPACES_H
#define NOJIT_TRAINER_BPE_SPACES_H

#include "text/bpe.h"

enum { SPACE_BYTES = 3 /* bytes of U+2581 */ };

/* Convert a token as such a file spells it to its bytes in out (as long as text). Return their
 * number, or -1 for a token that cannot occur in a text because it has a space. */
long spaces_bytes(const char *text, size_t bytes, char *out);
/* Return the byte that a token such as <0x0A> stands for, or -1. */
int spaces_byte(const char *text, size_t bytes);
/* Copy a text to out, as long as text, with a space for each U+2581; return the number of bytes. */
size_t spaces_fold(const char *text, size_t bytes, char *out);
/* Return whether a text begins with a space or U+2581. */
bool spaces_begin(const char *text, size_t bytes);
/* Spell bytes with U+2581 for each space into out, which has room for SPACE_BYTES times as
 * many. Return the length. */
size_t spaces_spell(const char *text, size_t bytes, char *out);
/* Return whether a token has a space behind another character, so that words cannot be cut
 * before spaces. */
bool spaces_within(const char *text, size_t bytes);

#endif
