/* SPDX-License-Identifier: Apache-2.0
 *
 * byte_alphabet.h: how vocabularies of byte-level BPE are spelled: each byte is a code point that can be seen.
 */
#ifndef NOJIT_TRAINER_BYTE_ALPHABET_H
#define NOJIT_TRAINER_BYTE_ALPHABET_H

#include <stddef.h>
#include <stdint.h>

struct alphabet {
    int16_t byte[512]; /* of a code point; -1: none */
    int16_t point[256];
};

void alphabet_make(struct alphabet *a);
/* Bytes of a token as the alphabet spells it, into out (as long as text). Returns how many, or -1 if it has a
 * code point that is not in the alphabet. */
long alphabet_bytes(const struct alphabet *a, const char *text, size_t bytes, char *out);
/* Spells bytes into out, which has room for twice as many. Returns the length. */
size_t alphabet_spell(const struct alphabet *a, const char *text, size_t bytes, char *out);

#endif
