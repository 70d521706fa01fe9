/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.h: an array that grows.
 */
#ifndef NOJIT_TRAINER_POOL_H
#define NOJIT_TRAINER_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct pool {
    void *at;
    size_t count, capacity; /* in items */
};

/* Appends items of `size` bytes each; false without memory. */
bool pool_add(struct pool *p, const void *items, size_t count, size_t size);

#endif
