/* SPDX-License-Identifier: Apache-2.0
 *
 * spaces.c: see spaces.h.
 */
#include "text/spaces.h"

#include "text/unicode.h"

#include <stdbool.h>

static bool white(uint32_t cp)
{
    return (unicode_class[cp] & UNICODE_SPACE) || (cp >= 0x1c && cp <= 0x1f);
}

size_t text_rstrip(const char *text, size_t bytes)
{
    uint32_t cp;
    unicode_prepare();
    while (bytes > 0) {
        const size_t n = utf8_before((const unsigned char *)text, bytes, &cp);
        if (!white(cp))
            break;
        bytes -= n;
    }
    return bytes;
}

void text_strip(const char **text, size_t *bytes)
{
    uint32_t cp;
    *bytes = text_rstrip(*text, *bytes);
    while (*bytes > 0) {
        const size_t n = utf8_next((const unsigned char *)*text, *bytes, &cp);
        if (!white(cp))
            break;
        *text += n;
        *bytes -= n;
    }
}
