/* SPDX-License-Identifier: Apache-2.0
 *
 * try.h: errors are int codes, 0 for success. A function with nothing to release returns the codes of others through
 * TRY; one that has something to release keeps the code in `rc`, releases at one place at its end, and returns rc.
 */
#ifndef NOJIT_TRY_H
#define NOJIT_TRY_H

/* Return the code of a call from the enclosing function, unless it is 0. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const int try_rc_ = (call);                                                                \
        if (try_rc_ != 0)                                                                          \
            return try_rc_;                                                                        \
    } while (0)

#endif
