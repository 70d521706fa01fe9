/* SPDX-License-Identifier: Apache-2.0
 *
 * libraries.h: what is linked statically into the program, by the names of the archives.
 */
#ifndef TRAINER_LIBRARIES_H
#define TRAINER_LIBRARIES_H

enum { LIBRARY_VERSION_BYTES = 32 };

struct library {
    const char *name, *licence; /* an SPDX expression */
    /* As the linked code itself has it; the buffer is for one that has no such text. */
    const char *(*version)(char buffer[LIBRARY_VERSION_BYTES]);
};

/* Ends with a row without a name. */
extern const struct library libraries[];

/* What compiled the C code: "gcc 12.2.0". */
const char *compiler_name(void);

#endif
