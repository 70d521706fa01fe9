/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h: conditions that fail only through a mistake in nojit, and whose failure would silently corrupt results. They
 * are checked in every build, but never in runtime/, a library that must not end its caller's process.
 */
#ifndef NOJIT_CHECK_H
#define NOJIT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

_Noreturn static inline void check_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "nojit: internal error: %s does not hold (%s:%d); please report it\n",
            condition, file, line);
    abort();
}

/* Abort with a message unless the condition holds. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(#condition, __FILE__, __LINE__);                                          \
    } while (0)

#endif
