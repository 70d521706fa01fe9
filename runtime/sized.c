/* SPDX-License-Identifier: Apache-2.0
 *
 * sized.c: structs between a program and a library that were compiled against different versions of nojit.h. Such
 * structs grow at their end alone, and their size, as the program knows it, comes with them.
 */
#include <string.h>

#include "internal.h"

enum { BYTES_MOST = 1 << 16 };

/* Return whether no version of the header can have had a struct of so many bytes: all of them hold pointers. */
static int is_nonsense(size_t bytes)
{
    return bytes == 0 || bytes > BYTES_MOST || bytes % sizeof(void *) != 0;
}

const char *nj_sized_read(void *ours, size_t our_bytes, const void *theirs, size_t bytes)
{
    const char *rest = (const char *)theirs + our_bytes;

    if (is_nonsense(bytes))
        return "has a size that it cannot have";
    for (size_t i = 0; our_bytes + i < bytes; i++)
        if (rest[i] != 0)
            return "sets what only a newer library has";
    memset(ours, 0, our_bytes);
    memcpy(ours, theirs, bytes < our_bytes ? bytes : our_bytes);
    return NULL;
}

int nj_sized_write(void *theirs, size_t bytes, const void *ours, size_t our_bytes)
{
    if (is_nonsense(bytes))
        return NJ_E_ARG;
    memset(theirs, 0, bytes);
    memcpy(theirs, ours, bytes < our_bytes ? bytes : our_bytes);
    return 0;
}
