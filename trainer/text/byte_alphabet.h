/* SPDX-License-Identifier: Apache-2.0
 *
 * byte_alphabet.h: spelling of the vocabularies of byte-level BPE: each byte is a printable code
 * point.
 */
#ifndef NOJIT_TRAINER_BYTE_ALPHABET_H
#define NOJIT_TRAINER_BYTE_ALPHABET_H

#include <stddef.h>
#include <stdint.h>

struct alphabet {
    int16_t byte[512]; /* byte of a code point; -1: none */
    int16_t point[256];
};

void alphabet_make(struct alphabet *a);
/* Convert a token as the alphabet spells it to its bytes in out (as long as text). Return their
 * number, or -1 if it has a code point that is not in the alphabet. */
long alphabet_bytes(const struct alphabet *a, const char *text, size_t bytes, char *out);
/* Spell bytes into out, which has room for twice as many. Return the length. */
size_t alphabet_spell(const struct alphabet *a, const char *text, size_t bytes, char *out);

#endif
