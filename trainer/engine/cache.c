/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.c: see cache.h.
 */
#include "engine/cache.h"

#include "checked.h"

int cache_positions(int positions)
{
    return (positions + CACHE_MULTIPLE - 1) / CACHE_MULTIPLE * CACHE_MULTIPLE;
}

void cache_carve(const struct net *n, int slots, int positions, struct carve *m, struct cache *out)
{
    const struct model_config *c = &n->c;
    const size_t row = size_product((size_t)c->kv_heads, (size_t)c->head_dim, dtype_bytes(n->T));
    *out = (struct cache){.slots = slots, .positions = cache_positions(positions)};
    out->layer_bytes = size_product((size_t)slots, (size_t)out->positions, row);
    out->keys = carve_take(m, size_mul((size_t)c->layers, out->layer_bytes));
    out->values = carve_take(m, size_mul((size_t)c->layers, out->layer_bytes));
}

struct layer_cache cache_layer(const struct cache *c, int layer)
{
    const size_t first = (size_t)layer * c->layer_bytes;
    return (struct layer_cache){c->keys + first, c->values + first};
}
