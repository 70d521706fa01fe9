/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.c: see cache.h.
 */
#include "net/cache.h"

#include "base/checked.h"
#include "base/decode.h"
#include "base/integers.h"

/* The number of places of a slot is a multiple of this. */
enum { CACHE_MULTIPLE = 64 };

/* Return the number of places of a layer: with a window the fewest that the kernels take (base/decode.h), if those are
 * fewer than the positions. */
static int places_of(const struct cache *c, const struct block *b)
{
    if (b->window <= 0 || b->window >= c->positions)
        return c->positions;
    return int_min(c->positions, int_round_up(b->window + CACHE_BLOCK - 1, CACHE_MULTIPLE));
}

/* Bytes of the keys or the values, and of the scales, of some layers. */
struct cache_bytes {
    size_t elements, scales;
};

static struct cache_bytes bytes_before(const struct net *n, const struct cache *c, int layers)
{
    struct cache_bytes sum = {0};
    for (int l = 0; l < layers; l++) {
        const struct block *b = arch_block(&n->c.arch, l, BLOCK_ATTENTION);
        if (!b)
            continue;
        const size_t rows =
            size_product((size_t)c->slots, (size_t)places_of(c, b), (size_t)b->kv_heads);
        const size_t row = size_mul((size_t)block_padded_dim(b), c->element);
        sum.elements = size_add(sum.elements, size_mul(rows, row));
        sum.scales = size_add(sum.scales, size_product(rows, 2, sizeof(float)));
    }
    return sum;
}

/* Return the number of states of the convolution of a recurrent block, and of its delta rule. */
static size_t conv_states(const struct cache *c, const struct block *b)
{
    return size_product((size_t)c->slots, (size_t)b->taps - 1, (size_t)block_channels(b));
}

static size_t delta_states(const struct cache *c, const struct block *b)
{
    const size_t heads = size_mul((size_t)c->slots, (size_t)b->heads), D = (size_t)b->head_dim;
    return b->kind == BLOCK_DELTA ? size_product(heads, D, D) : 0;
}

/* Return the number of states of the first layers. */
static size_t states_before(const struct net *n, const struct cache *c, int layers)
{
    size_t sum = 0;
    for (int l = 0; l < layers; l++) {
        const struct block *b = arch_recurrent(&n->c.arch, l);
        if (b)
            sum = size_add(sum, size_add(conv_states(c, b), delta_states(c, b)));
    }
    return sum;
}

void cache_carve(const struct net *n, int slots, int positions, bool bytes, struct carve *m,
                 struct cache *out)
{
    *out = (struct cache){.slots = slots,
                          .positions = int_round_up(positions, CACHE_MULTIPLE),
                          .element = bytes ? 1 : dtype_bytes(n->T)};
    const struct cache_bytes all = bytes_before(n, out, n->c.layers);
    out->keys = carve_take(m, all.elements);
    out->values = carve_take(m, all.elements);
    if (bytes)
        out->scales = carve_take(m, all.scales);
    out->states = carve_take(m, size_mul(states_before(n, out, n->c.layers), sizeof *out->states));
}

struct layer_cache cache_layer(const struct net *n, const struct cache *c, int layer)
{
    const struct block *b = arch_block(&n->c.arch, layer, BLOCK_ATTENTION);
    const struct cache_bytes before = bytes_before(n, c, layer);
    float *scales = c->scales ? c->scales + before.scales / sizeof(float) : NULL;
    const struct block *recurrent = arch_recurrent(&n->c.arch, layer);
    float *conv = c->states + states_before(n, c, layer);
    return (struct layer_cache){.keys = c->keys + before.elements,
                                .values = c->values + before.elements,
                                .scales = scales,
                                .places = b ? places_of(c, b) : 0,
                                .conv = conv,
                                .delta = recurrent ? conv + conv_states(c, recurrent) : NULL};
}
