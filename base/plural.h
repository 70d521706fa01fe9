/* SPDX-License-Identifier: Apache-2.0
 *
 * plural.h: for the sentences of programs: "1 step", "2 steps".
 */
#ifndef NOJIT_PLURAL_H
#define NOJIT_PLURAL_H

/* What follows a word that counts n things. */
static inline const char *plural(long long n)
{
    return n == 1 ? "" : "s";
}

#endif
