/* SPDX-License-Identifier: Apache-2.0
 *
 * assemblers.h: which releases of an assembler the archs of an index name, as one phrase. For the runtime and for
 * the tools that read binaries.
 */
#ifndef NOJIT_ASSEMBLERS_H
#define NOJIT_ASSEMBLERS_H

#include <stdio.h>
#include <string.h>

#include "index.h"

/* Return the length of the common prefix of both strings, up to and including its last space: "ptxas ". */
static inline size_t nji_same_words(const char *a, const char *b)
{
    size_t same = 0;

    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == ' ')
            same = i + 1;
    return same;
}

/* Write "ptxas 13.0.88", or with several "ptxas 13.0.88, 13.3.73 for sm_120 sm_121": the first release is that of
 * every arch that is not named. Each assembler_str must lie in strings; an empty one is left out. */
static inline void nji_assemblers(const struct nji_arch *archs, uint32_t count, const char *strings,
                                  char *out, size_t bytes)
{
    const char *first = NULL;
    size_t used = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < count; i++) {
        const char *name = strings + archs[i].assembler_str;
        uint32_t before = 0;

        while (strcmp(strings + archs[before].assembler_str, name) != 0)
            before++;
        if (before < i || !name[0]) /* its release has been written */
            continue;
        if (used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", first ? ", " : "",
                                     first ? name + nji_same_words(first, name) : name);
        for (uint32_t k = i; first && k < count; k++)
            if (strcmp(strings + archs[k].assembler_str, name) == 0 && used < bytes)
                used +=
                    (size_t)snprintf(out + used, bytes - used, "%s sm_%u%.1s", k == i ? " for" : "",
                                     archs[k].sm, (const char[]){(char)archs[k].suffix, '\0'});
        first = first ? first : name;
    }
}

#endif
