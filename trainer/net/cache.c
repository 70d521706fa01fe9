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

/* Return the key heads of the first layers, and the bytes of their keys or values for one position. */
static size_t heads_before(const struct net *n, const struct cache *c, int layers, size_t *bytes)
{
    size_t heads = 0;
    *bytes = 0;
    for (int l = 0; l < layers; l++) {
        const struct block *b = arch_block(&n->c.arch, l, BLOCK_ATTENTION);
        if (!b)
            continue;
        heads = size_add(heads, (size_t)b->kv_heads);
        *bytes = size_add(
            *bytes, size_product((size_t)b->kv_heads, (size_t)block_padded_dim(b), c->element));
    }
    return heads;
}

void cache_carve(const struct net *n, int slots, int positions, bool bytes, struct carve *m,
                 struct cache *out)
{
    size_t each;
    *out = (struct cache){.slots = slots,
                          .positions = positions_of_slot(positions),
                          .element = bytes ? 1 : dtype_bytes(n->T)};
    const size_t all = size_mul((size_t)slots, (size_t)out->positions);
    const size_t heads = heads_before(n, out, n->c.layers, &each);
    out->keys = carve_take(m, size_mul(all, each));
    out->values = carve_take(m, size_mul(all, each));
    if (bytes)
        out->scales = carve_take(m, size_product(size_mul(all, heads), 2, sizeof(float)));
}

struct layer_cache cache_layer(const struct net *n, const struct cache *c, int layer)
{
    const size_t all = (size_t)c->slots * (size_t)c->positions;
    size_t each;
    const size_t heads = heads_before(n, c, layer, &each);
    float *scales = c->scales ? c->scales + 2 * all * heads : NULL;
    return (struct layer_cache){c->keys + all * each, c->values + all * each, scales};
}
