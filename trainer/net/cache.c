/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.c: see cache.h.
 */
#include "net/cache.h"

#include "base/checked.h"

/* The number of positions of a slot is a multiple of this. */
enum { CACHE_MULTIPLE = 64 };

static int positions_of_slot(int positions)
{
    return (positions + CACHE_MULTIPLE - 1) / CACHE_MULTIPLE * CACHE_MULTIPLE;
}

/* Return the number of scales of a layer. */
static size_t scale_count(const struct net *n, const struct cache *c)
{
    return size_product(2, size_mul((size_t)c->slots, (size_t)c->positions), (size_t)n->c.kv_heads);
}

void cache_carve(const struct net *n, int slots, int positions, bool bytes, struct carve *m,
                 struct cache *out)
{
    const struct model_config *c = &n->c;
    const size_t layers = (size_t)c->layers, element = bytes ? 1 : dtype_bytes(n->T);
    const size_t row = size_product((size_t)c->kv_heads, (size_t)c->head_dim, element);
    *out = (struct cache){.slots = slots, .positions = positions_of_slot(positions)};
    out->layer_bytes = size_product((size_t)slots, (size_t)out->positions, row);
    out->keys = carve_take(m, size_mul(layers, out->layer_bytes));
    out->values = carve_take(m, size_mul(layers, out->layer_bytes));
    if (bytes)
        out->scales = carve_take(m, size_product(layers, scale_count(n, out), sizeof(float)));
}

struct layer_cache cache_layer(const struct net *n, const struct cache *c, int layer)
{
    const size_t first = (size_t)layer * c->layer_bytes;
    float *scales = c->scales ? c->scales + (size_t)layer * scale_count(n, c) : NULL;
    return (struct layer_cache){c->keys + first, c->values + first, scales};
}
