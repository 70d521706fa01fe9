/* SPDX-License-Identifier: Apache-2.0
 *
 * letters.h: the code points of a text, which is always UTF-8, as Python's strings have them.
 */
#ifndef NOJIT_TRAINER_LETTERS_H
#define NOJIT_TRAINER_LETTERS_H

#include "template/value.h"

enum letter_case { CASE_LOWER, CASE_UPPER, CASE_TITLE, CASE_CAPITAL, CASE_SWAP };

static inline bool inside_letter(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}
/* Count code points. */
size_t letters_count(const char *text, size_t bytes);
/* Return the offset of the code point with this index; `bytes` if there are fewer. */
size_t letters_offset(const char *text, size_t bytes, size_t index);
/* Convert the text to another case. */
int letters_case(struct run *r, enum letter_case to, const struct value *text, struct value *out);
bool letter_upper(uint32_t cp);
bool letter_lower(uint32_t cp);
bool letter_alpha(uint32_t cp);
bool letter_decimal(uint32_t cp);
bool letter_digit(uint32_t cp);
bool letter_numeric(uint32_t cp);
/* Return whether Python's repr() writes the code point unescaped. */
bool letter_printable(uint32_t cp);
/* Write a code point as UTF-8; return the number of bytes, at most 4. */
size_t letter_put(uint32_t cp, char *out);

#endif
