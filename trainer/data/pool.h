/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h: an array that grows.
 */
#ifndef NOJIT_TRAINER_POOL_H
#define NOJIT_TRAINER_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool {
    void *at;
    size_t count, capacity; /* number of items; room for items */
};

/* Append items of `size` bytes each; false without memory. */
bool pool_add(struct pool *p, const void *items, size_t count, size_t size);

/* A run of items of a pool; for a text, without the NUL behind it. */
struct stretch {
    uint64_t first, count;
};
/* Append a text and a NUL to a pool of bytes. */
bool pool_add_text(struct pool *p, const char *text, size_t bytes, struct stretch *out);

#endif
