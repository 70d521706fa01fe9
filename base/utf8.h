/* SPDX-License-Identifier: Apache-2.0
 *
 * utf8.h: code points of a text, and texts made safe to show on a terminal.
 */
#ifndef NOJIT_UTF8_H
#define NOJIT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NOT_UTF8 0x110000u /* the result for a byte that is not valid UTF-8; it has no class */

/* Return the length of the code point at s, where `left` > 0 bytes remain. A byte that starts no code point counts as
 * one. */
static inline size_t utf8_next(const unsigned char *s, size_t left, uint32_t *cp)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint32_t c = s[0];
    *cp = c;
    if (c < 0x80)
        return 1;
    const size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    *cp = NOT_UTF8;
    if (c < 0xc2 || c > 0xf4 || left < n)
        return 1;
    uint32_t value = c & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 1;
        value = value << 6 | (s[i] & 0x3fu);
    }
    if (value < least[n] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
        return 1;
    *cp = value;
    return n;
}

/* Return whether a code point moves a terminal's cursor, changes its state, reverses text, or is not text at all. */
static inline bool is_control(uint32_t cp)
{
    return cp < ' ' || (cp >= 0x7f && cp < 0xa0) || (cp >= 0x202a && cp <= 0x202e) ||
           (cp >= 0x2066 && cp <= 0x2069) || cp == NOT_UTF8;
}

/* Replace each byte of a control character by a question mark: names come from files that others wrote. */
static inline void make_printable(char *text)
{
    uint32_t cp;
    for (size_t left = strlen(text), n; left > 0; text += n, left -= n) {
        n = utf8_next((const unsigned char *)text, left, &cp);
        if (is_control(cp))
            memset(text, '?', n);
    }
}

#endif
