/* SPDX-License-Identifier: Apache-2.0
 *
 * cursor.h: files of binary fields, read from a mapping: each read is held against the bytes that are left.
 */
#ifndef NOJIT_TRAINER_CURSOR_H
#define NOJIT_TRAINER_CURSOR_H

#include "formats/tensors.h"

#include <stddef.h>
#include <stdint.h>

struct cursor {
    const char *path;
    const unsigned char *base, *at, *end;
};

/* Maps the file, which has `least` bytes at least, for w, which owns the mapping even after a failure, and puts c
 * at its begin. kind: "a GGUF", for a sentence; remedy: for a file that cannot be opened. */
int cursor_open(const char *path, const char *kind, size_t least, const char *remedy,
                struct tensors *w, struct cursor *c);
static inline size_t cursor_left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}
/* NJ_E_FORMAT, with a sentence that names what is being read. */
int cursor_short(const struct cursor *c, const char *what);
/* Little-endian, of 1 to 8 bytes. */
int cursor_number(struct cursor *c, size_t bytes, const char *what, uint64_t *out);

/* Refuses tensors that overlap in their file; puts them in the order in which they lie there. */
int tensors_check_overlap(const char *path, struct tensor *t, size_t count);

#endif
