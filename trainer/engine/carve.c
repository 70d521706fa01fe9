/* SPDX-License-Identifier: Apache-2.0
 *
 * carve.c: see carve.h.
 */
#include "engine/carve.h"

#include "checked.h"

void *carve_take(struct carve *c, size_t bytes)
{
    void *at = c->base ? c->base + c->used : NULL;
    c->used = size_add(c->used, size_up(bytes, CARVE_ALIGN));
    return at;
}
