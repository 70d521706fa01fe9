/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.h: memory that is allocated in pieces, up to a limit, and freed at once.
 */
#ifndef NOJIT_TRAINER_ARENA_H
#define NOJIT_TRAINER_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *last;
    size_t left;  /* bytes that remain in the last chunk */
    size_t taken; /* total bytes of all chunks */
    size_t most;  /* maximum of `taken` */
    bool spent;   /* whether the limit was reached */
};

/* Return aligned, uninitialized memory; NULL if there is none or the limit is reached. */
void *arena_take(struct arena *a, size_t bytes);
/* Return zeroed memory, as arena_take() does. */
void *arena_zero(struct arena *a, size_t bytes);
/* Return a copy, followed by a NUL. */
char *arena_copy(struct arena *a, const void *data, size_t bytes);
void arena_free(struct arena *a);

#endif
