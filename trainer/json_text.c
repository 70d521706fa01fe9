/* SPDX-License-Identifier: Apache-2.0
 *
 * json_text.c: see json_text.h.
 */
#include "json_text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "unicode.h"

json_t *json_text(const char *text, size_t bytes)
{
    static const char replacement[] = "\xef\xbf\xbd";
    char *valid = malloc(3 * bytes + 1);
    size_t n = 0, length;
    if (valid == NULL)
        return NULL;
    for (size_t at = 0; at < bytes; at += length) {
        uint32_t cp;
        length = utf8_next((const unsigned char *)text + at, bytes - at, &cp);
        const bool bad = cp == NOT_UTF8;
        memcpy(valid + n, bad ? replacement : text + at, bad ? 3 : length);
        n += bad ? 3 : length;
    }
    json_t *out = json_stringn_nocheck(valid, n);
    free(valid);
    return out;
}
