/* SPDX-License-Identifier: Apache-2.0
 *
 * mapped.h: files that are mapped while they are loaded. Where one loses bytes meanwhile, the process ends
 * with a sentence that names it, and status 1.
 */
#ifndef NOJIT_TRAINER_MAPPED_H
#define NOJIT_TRAINER_MAPPED_H

#include <stddef.h>

/* Maps so many bytes, at least one, of an open file; fd may be closed then. */
int mapped_begin(const char *path, int fd, size_t bytes, void **base);
void mapped_end(void *base); /* NULL is fine */
/* Bytes that will hardly be read again: taking pages out of a mapping takes time, which several threads share so. Does
 * nothing to bytes that lie in no mapping. */
void mapped_passed(const void *data, size_t bytes);

#endif
