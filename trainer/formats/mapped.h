/* SPDX-License-Identifier: Apache-2.0
 *
 * mapped.h: files that are mapped while they are loaded. If a file shrinks meanwhile, the
 * process ends with a sentence that names it, and status 1.
 */
#ifndef NOJIT_TRAINER_MAPPED_H
#define NOJIT_TRAINER_MAPPED_H

#include <stddef.h>

/* Map the given number of bytes, at least one, of an open file; fd may be closed afterwards. */
int mapped_begin(const char *path, int fd, size_t bytes, void **base);
void mapped_end(void *base); /* base may be NULL */
/* Mark bytes as unlikely to be read again: unmapping pages takes time, which is shared by
 * several threads this way. Does nothing to bytes outside any mapping. */
void mapped_passed(const void *data, size_t bytes);

#endif
