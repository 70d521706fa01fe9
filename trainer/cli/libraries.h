/* SPDX-License-Identifier: Apache-2.0
 *
 * libraries.h: what is linked statically into the program, by the names of the archives.
 */
#ifndef TRAINER_LIBRARIES_H
#define TRAINER_LIBRARIES_H

struct library {
    const char *name, *license;   /* name, and license as an SPDX expression */
    const char *(*version)(void); /* returns the version that the linked code itself reports */
};

/* Libraries; a row without a name ends the list. */
extern const struct library libraries[];

/* Return the compiler of the C code: "gcc 12.2.0". */
const char *compiler_name(void);

#endif
