/* SPDX-License-Identifier: Apache-2.0
 *
 * tables.c: see tables.h. The frequencies of all rotations come first, then two maps for each rotation that needs them.
 */
#include "net/tables.h"

#include "base/checked.h"

_Static_assert(sizeof(float) == sizeof(int32_t),
               "elements of both kinds of tables are equally large");

/* Return the number of elements of the maps of the first rotations. */
static int mapped(const struct model_config *c, int ropes)
{
    int count = 0;
    for (int i = 0; i < ropes; i++) {
        const struct block *b = config_rotated_block(c, i);
        if (b && arch_maps_heads(&c->arch, b))
            count += block_padded_dim(b) + b->head_dim;
    }
    return count;
}

void tables_place(struct net *n)
{
    for (int i = 0; i < ROPES_MOST; i++) {
        n->frequencies[i] = config_frequencies(&n->c, i);
        n->maps[i] = config_frequencies(&n->c, ROPES_MOST) + mapped(&n->c, i);
    }
}

size_t tables_bytes(const struct model_config *c)
{
    const int count = config_frequencies(c, ROPES_MOST) + mapped(c, ROPES_MOST);
    return size_mul((size_t)count, sizeof(float));
}

/* Return the element of a product's head that becomes element i of attention's; -1: there is none. Pairs that rotate
 * lie half a head apart, and the other elements fill what is left. */
static int element(const struct rope *r, int D, int padded, int i)
{
    const int pairs = rope_rotary(r, D) / 2, half = i >= padded / 2, pair = i - half * padded / 2;
    if (pair < pairs)
        return r->neighbors ? 2 * pair + half : pair + half * pairs;
    const int other = 2 * pairs + half * (padded / 2 - pairs) + pair - pairs;
    return other < D ? other : -1;
}

static void fill_maps(const struct rope *r, int D, int padded, int32_t *to)
{
    for (int i = 0; i < padded; i++) {
        to[i] = element(r, D, padded, i);
        if (to[i] >= 0)
            to[padded + to[i]] = i;
    }
}

void tables_fill(const struct model_config *c, int positions, void *to)
{
    int32_t *maps = (int32_t *)to + config_frequencies(c, ROPES_MOST);
    config_inv_freq(c, positions, to);
    for (int i = 0; i < ROPES_MOST; i++) {
        const struct block *b = config_rotated_block(c, i);
        if (b && arch_maps_heads(&c->arch, b))
            fill_maps(&c->arch.rope[i], b->head_dim, block_padded_dim(b), maps + mapped(c, i));
    }
}

const float *tables_frequencies(const struct net *n, const struct block *b)
{
    return n->inv_freq + n->frequencies[b->rope];
}

const int32_t *tables_map_to(const struct net *n, const struct block *b)
{
    return (const int32_t *)(const void *)n->inv_freq + n->maps[b->rope];
}

const int32_t *tables_map_back(const struct net *n, const struct block *b)
{
    return tables_map_to(n, b) + block_padded_dim(b);
}
