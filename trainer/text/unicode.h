/* SPDX-License-Identifier: Apache-2.0
 *
 * unicode.h: properties of a code point that splitting text needs.
 */
#ifndef NOJIT_TRAINER_UNICODE_H
#define NOJIT_TRAINER_UNICODE_H

#include "base/utf8.h"

#include <stdbool.h>

enum {
    UNICODE_LETTER = 1,   /* \p{L} */
    UNICODE_NUMBER = 2,   /* \p{N} */
    UNICODE_SPACE = 4,    /* \s: White_Space */
    UNICODE_WORD = 8,     /* \w */
    UNICODE_MOVES = 16,   /* NFC may change it, or compose it with the code point before it */
    UNICODE_NEWLINE = 32, /* [\r\n] */
    UNICODE_COMPAT = 64,  /* NFKC changes it */
    UNICODE_APART = 128   /* NFC neither changes nor composes nor reorders it */
};

/* Classes of all code points and of NOT_UTF8, filled by the first unicode_prepare(). */
extern uint8_t unicode_class[NOT_UTF8 + 1];
void unicode_prepare(void);

/* Return the length of the code point that ends at s + at, at > 0. */
static inline size_t utf8_before(const unsigned char *s, size_t at, uint32_t *cp)
{
    for (size_t n = 1; n <= 4 && n <= at; n++)
        if (utf8_next(s + at - n, n, cp) == n && *cp != NOT_UTF8)
            return n;
    *cp = NOT_UTF8;
    return 1;
}

/* Return whether bytes are UTF-8 without NUL. */
static inline bool unicode_is_text(const char *text, size_t bytes)
{
    uint32_t cp = 1;
    for (size_t at = 0; at < bytes && cp != NOT_UTF8 && cp != 0;)
        at += utf8_next((const unsigned char *)text + at, bytes - at, &cp);
    return cp != NOT_UTF8 && cp != 0;
}

/* Return the end of the stretch from `at` on whose code points all have a wanted class. */
size_t unicode_run(const unsigned char *s, size_t bytes, size_t at, int wanted);

enum unicode_form { UNICODE_AS_IS, UNICODE_NFC, UNICODE_NFKC };

/* Normalize text into *out (grown with realloc), as the `tokenizers` library does; bytes that
 * are not UTF-8 are unchanged. Return 1 with *out filled, 0 if text has the form already, or
 * NJ_E_NOMEM. */
int unicode_normalize(enum unicode_form form, const char *text, size_t bytes, char **out,
                      size_t *count, size_t *capacity);

#endif
