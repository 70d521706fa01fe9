/* SPDX-License-Identifier: Apache-2.0
 *
 * check.h: conditions that hold unless nojit itself is wrong, where going on would corrupt what it computes without a
 * word. They are checked in every build. The library in runtime/, which never ends a process, has none.
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

/* End the process with a sentence unless the condition holds. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            check_failed(#condition, __FILE__, __LINE__);                                          \
    } while (0)

#endif
