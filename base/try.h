/* SPDX-License-Identifier: Apache-2.0
 *
 * try.h: errors are int codes, 0 if all is well. A function that has nothing to clean up hands on those of others by
 * TRY; one that has keeps the code in `rc`, cleans up at one place at its end, and returns rc.
 */
#ifndef NOJIT_TRY_H
#define NOJIT_TRY_H

/* Return the code of a call from the function around it, unless it is 0. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const int try_rc_ = (call);                                                                \
        if (try_rc_ != 0)                                                                          \
            return try_rc_;                                                                        \
    } while (0)

#endif
