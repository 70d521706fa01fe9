/* SPDX-License-Identifier: Apache-2.0
 *
 * real_path.c: see real_path.h.
 */
#include "io/real_path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/path.h"

void real_path(const char *path, char *out, size_t bytes)
{
    char place[PATH_BYTES], found[PATH_BYTES] = "";
    const char *start = path[0] == '/' ? "/" : ".";
    snprintf(place, sizeof place, "%s", path);
    size_t kept = strlen(place);
    while (kept > 1 && place[kept - 1] == '/')
        place[--kept] = '\0';
    const size_t whole = kept;
    while (realpath(kept > 0 ? place : start, found) == NULL && kept > 0) {
        while (kept > 0 && place[--kept] != '/')
            ;
        place[kept] = '\0';
    }
    if (kept == whole) {
        snprintf(out, bytes, "%s", found);
        return;
    }
    const char *rest = path + kept + (path[kept] == '/');
    snprintf(out, bytes, "%s/%.*s", strcmp(found, "/") == 0 ? "" : found,
             (int)(path + whole - rest), rest);
}
