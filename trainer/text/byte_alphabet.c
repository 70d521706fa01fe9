/* SPDX-License-Identifier: Apache-2.0
 *
 * byte_alphabet.c: see byte_alphabet.h.
 */
#include "text/byte_alphabet.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

void alphabet_make(struct alphabet *a)
{
    int16_t next = 256;
    memset(a->byte, 0xff, sizeof a->byte);
    for (int16_t b = 0; b < 256; b++) {
        const bool seen = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        a->point[b] = seen ? b : next++;
        a->byte[a->point[b]] = b;
    }
}

long alphabet_bytes(const struct alphabet *a, const char *text, size_t bytes, char *out)
{
    long n = 0;
    uint32_t cp;
    for (size_t at = 0; at < bytes;) {
        at += utf8_next((const unsigned char *)text + at, bytes - at, &cp);
        if (cp >= 512 || a->byte[cp] < 0)
            return -1;
        out[n++] = (char)a->byte[cp];
    }
    return n;
}

size_t alphabet_spell(const struct alphabet *a, const char *text, size_t bytes, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        const int cp = a->point[(unsigned char)text[i]];
        if (cp < 0x80) {
            out[n++] = (char)cp;
            continue;
        }
        out[n++] = (char)(0xc0 | cp >> 6);
        out[n++] = (char)(0x80 | (cp & 0x3f));
    }
    return n;
}
