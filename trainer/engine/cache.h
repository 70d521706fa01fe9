/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.h: keys and values of the sequences that a decoder writes.
 */
#ifndef NOJIT_TRAINER_CACHE_H
#define NOJIT_TRAINER_CACHE_H

#include "engine/carve.h"
#include "engine/net.h"

/* A slot holds one sequence. Of each layer: keys [slots, K, positions, D], values [slots, K, D, positions], as
 * kv_store and attn_decode have them. */
struct cache {
    int slots, positions;
    char *keys, *values; /* of the first layer; those of the others follow */
    size_t layer_bytes;  /* of the keys, and of the values, of one */
};

/* Positions of a slot that holds sequences of this many. */
enum { CACHE_MULTIPLE = 64 };
int cache_positions(int positions);
void cache_carve(const struct net *n, int slots, int positions, struct carve *m, struct cache *out);
struct layer_cache {
    void *keys, *values;
};
struct layer_cache cache_layer(const struct cache *c, int layer);

#endif
