/* SPDX-License-Identifier: Apache-2.0
 *
 * plural.h: plurals in messages: "1 step", "2 steps".
 */
#ifndef NOJIT_PLURAL_H
#define NOJIT_PLURAL_H

/* Return the ending of a noun that counts n things: "s", or "" for one. */
static inline const char *plural(long long n)
{
    return n == 1 ? "" : "s";
}

#endif
