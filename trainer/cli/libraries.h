/* SPDX-License-Identifier: Apache-2.0
 *
 * libraries.h: what is linked statically into the program, by the names of the archives.
 */
#ifndef TRAINER_LIBRARIES_H
#define TRAINER_LIBRARIES_H

struct library {
    const char *name, *licence;   /* an SPDX expression */
    const char *(*version)(void); /* as the linked code itself has it */
};

/* Ends with a row without a name. */
extern const struct library libraries[];

/* What compiled the C code: "gcc 12.2.0". */
const char *compiler_name(void);

#endif
