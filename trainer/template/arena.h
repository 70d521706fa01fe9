/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.h: memory that is taken piece by piece, up to a limit, and freed at once.
 */
#ifndef NOJIT_TRAINER_ARENA_H
#define NOJIT_TRAINER_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *last;
    size_t left;  /* bytes that remain in the last chunk */
    size_t taken; /* bytes of all chunks */
    size_t most;  /* limit of `taken` */
    bool spent;   /* the limit was met */
};

/* Returns aligned memory, not cleared; NULL if there is none or the limit is met. */
void *arena_take(struct arena *a, size_t bytes);
/* Returns the same, cleared. */
void *arena_zero(struct arena *a, size_t bytes);
/* Returns a copy, followed by a NUL. */
char *arena_copy(struct arena *a, const void *data, size_t bytes);
void arena_free(struct arena *a);

#endif
