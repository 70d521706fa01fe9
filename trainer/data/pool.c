/* SPDX-License-Identifier: Apache-2.0
 *
 * pool.c: see pool.h.
 */
#include "data/pool.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

bool pool_add(struct pool *p, const void *items, size_t count, size_t size)
{
    if (!grow_array(&p->at, &p->capacity, p->count + (count > 0 ? count : 1), size))
        return false;
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
