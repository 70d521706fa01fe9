/* SPDX-License-Identifier: Apache-2.0
 *
 * spaces.c: see spaces.h.
 */
#include "template/spaces.h"

#include "base/utf8.h"

bool is_white(uint32_t cp)
{
    if (cp < 0x80)
        return cp == ' ' || (cp >= 0x09 && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x1f);
    return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
           cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

size_t text_white(const char *text, size_t bytes)
{
    uint32_t cp;
    size_t at = 0;
    while (at < bytes) {
        const size_t n = utf8_next((const unsigned char *)text + at, bytes - at, &cp);
        if (!is_white(cp))
            break;
        at += n;
    }
    return at;
}

size_t text_rstrip(const char *text, size_t bytes)
{
    uint32_t cp;
    while (bytes > 0) {
        size_t n = 1;
        while (n < 3 && n < bytes && ((unsigned char)text[bytes - n] & 0xc0) == 0x80)
            n++;
        if (utf8_next((const unsigned char *)text + bytes - n, n, &cp) != n || !is_white(cp))
            break;
        bytes -= n;
    }
    return bytes;
}

void text_strip(const char **text, size_t *bytes)
{
    *bytes = text_rstrip(*text, *bytes);
    const size_t white = text_white(*text, *bytes);
    *text += white;
    *bytes -= white;
}
