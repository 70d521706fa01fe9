/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c: see pool.h.
 */
#include "data/pool.h"

#include <stdlib.h>
#include <string.h>

bool pool_add(struct pool *p, const void *items, size_t count, size_t size)
{
    if (p->capacity - p->count < count || !p->at) {
        const size_t grown = p->count + count + (p->count + count) / 2 + 16;
        char *more = realloc(p->at, grown * size);
        if (!more)
            return false;
        p->at = more;
        p->capacity = grown;
    }
    if (count > 0)
        memcpy((char *)p->at + p->count * size, items, count * size);
    p->count += count;
    return true;
}

bool pool_add_text(struct pool *p, const char *text, size_t bytes, struct stretch *out)
{
    *out = (struct stretch){p->count, bytes};
    return pool_add(p, text, bytes, 1) && pool_add(p, "", 1, 1);
}
