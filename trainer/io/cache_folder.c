/* SPDX-License-Identifier: Apache-2.0
 *
 * cache_folder.c: see cache_folder.h.
 */
#include "io/cache_folder.h"

#include <stdio.h>
#include <stdlib.h>

void cache_folder(char *out, size_t bytes)
{
    static const char own[] = "/nojit";
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (cache != NULL && cache[0] == '/')
        n = snprintf(out, bytes, "%s", cache);
    else if (home != NULL && home[0] == '/')
        n = snprintf(out, bytes, "%s/.cache", home);
    if (n < 0 || (size_t)n + sizeof own > bytes) {
        *out = '\0';
        return;
    }
    snprintf(out + n, bytes - (size_t)n, "%s", own);
}
