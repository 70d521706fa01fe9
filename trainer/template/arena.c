/* SPDX-License-Identifier: Apache-2.0
 *
 * arena.c: see arena.h.
 */
#include "template/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_LEAST = 1 << 14, CHUNK_MOST = 1 << 20 };

struct arena_chunk {
    struct arena_chunk *before;
    size_t bytes;
    alignas(max_align_t) char at[];
};

/* Add a chunk, larger than the one before, with room for `bytes`. */
static bool grow(struct arena *a, size_t bytes)
{
    size_t room = a->last ? 2 * a->last->bytes : CHUNK_LEAST;
    if (room > CHUNK_MOST)
        room = CHUNK_MOST;
    if (room < bytes)
        room = bytes;
    a->spent = room > a->most - a->taken;
    struct arena_chunk *chunk = a->spent ? NULL : malloc(sizeof *chunk + room);
    if (!chunk)
        return false;
    *chunk = (struct arena_chunk){a->last, room};
    a->last = chunk;
    a->left = room;
    a->taken += room;
    return true;
}

void *arena_take(struct arena *a, size_t bytes)
{
    const size_t unit = alignof(max_align_t);
    if (bytes > a->most) {
        a->spent = true;
        return NULL;
    }
    const size_t rounded = (bytes + unit - 1) / unit * unit;
    if (rounded > a->left && !grow(a, rounded))
        return NULL;
    char *at = a->last->at + (a->last->bytes - a->left);
    a->left -= rounded;
    return at;
}

void *arena_zero(struct arena *a, size_t bytes)
{
    void *at = arena_take(a, bytes);
    if (at)
        memset(at, 0, bytes);
    return at;
}

char *arena_copy(struct arena *a, const void *data, size_t bytes)
{
    char *at = arena_take(a, bytes + 1);
    if (!at)
        return NULL;
    if (bytes > 0)
        memcpy(at, data, bytes);
    at[bytes] = '\0';
    return at;
}

void arena_free(struct arena *a)
{
    for (struct arena_chunk *c = a->last, *before; c; c = before) {
        before = c->before;
        free(c);
    }
    *a = (struct arena){.most = a->most};
}
