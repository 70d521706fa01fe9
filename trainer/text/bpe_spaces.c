/* SPDX-License-Identifier: Apache-2.0
 *
 * bpe_spaces.c: see bpe_spaces.h.
 */
#include "text/bpe_spaces.h"

#include <string.h>

#define SPACE "\xe2\x96\x81"
enum { BYTE_TOKEN = 6 };

size_t spaces_fold(const char *text, size_t bytes, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes;) {
        const bool space = bytes - i >= SPACE_BYTES && memcmp(text + i, SPACE, SPACE_BYTES) == 0;
        out[n++] = space ? ' ' : text[i];
        i += space ? SPACE_BYTES : 1;
    }
    return n;
}

bool spaces_begin(const char *text, size_t bytes)
{
    return (bytes > 0 && text[0] == ' ') ||
           (bytes >= SPACE_BYTES && memcmp(text, SPACE, SPACE_BYTES) == 0);
}

size_t spaces_spell(const char *text, size_t bytes, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        const bool space = text[i] == ' ';
        memcpy(out + n, space ? SPACE : text + i, space ? SPACE_BYTES : 1);
        n += space ? SPACE_BYTES : 1;
    }
    return n;
}

int spaces_byte(const char *text, size_t bytes)
{
    static const char digits[] = "0123456789ABCDEF";
    if (bytes != BYTE_TOKEN || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
        return -1;
    const char *high = memchr(digits, text[3], 16), *low = memchr(digits, text[4], 16);
    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

long spaces_bytes(const char *text, size_t bytes, char *out)
{
    return memchr(text, ' ', bytes) ? -1 : (long)spaces_fold(text, bytes, out);
}

bool spaces_within(const char *text, size_t bytes)
{
    for (size_t i = 1; i < bytes; i++)
        if (text[i] == ' ' && text[i - 1] != ' ')
            return true;
    return false;
}
