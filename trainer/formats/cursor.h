/* SPDX-License-Identifier: Apache-2.0
 *
 * cursor.h: files of binary fields, read from a mapping: each read is checked against the number
 * of bytes left.
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

/* Map the file, which must have at least `least` bytes, for w, which owns the mapping even after
 * a failure, and set c to its beginning. kind: "a GGUF", for a sentence; remedy: for a file that
 * cannot be opened. */
int cursor_open(const char *path, const char *kind, size_t least, const char *remedy,
                struct tensors *w, struct cursor *c);
static inline size_t cursor_left(const struct cursor *c)
{
    return (size_t)(c->end - c->at);
}
/* Return NJ_E_FORMAT, with a sentence that names the item being read. */
int cursor_short(const struct cursor *c, const char *what);
/* Read a little-endian number of 1 to 8 bytes. */
int cursor_number(struct cursor *c, size_t bytes, const char *what, uint64_t *out);

/* Refuse tensors that overlap in their file, and sort them by their position in it. */
int tensors_check_overlap(const char *path, struct tensor *t, size_t count);

#endif
