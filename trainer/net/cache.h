/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.h: keys and values of the sequences that a decoder writes.
 */
#ifndef NOJIT_TRAINER_CACHE_H
#define NOJIT_TRAINER_CACHE_H

#include "net/carve.h"
#include "net/net.h"

/* A slot holds one sequence. Of each layer: keys [slots, K, positions, D], values [slots, K, positions / 32, D, 32], as
 * kv_store and attn_decode, or kv_store_q8 and attn_decode_q8, have them (base/decode.h). */
struct cache {
    int slots, positions;
    char *keys, *values; /* of the first layer; those of the others follow */
    size_t layer_bytes;  /* of the keys, and of the values, of one */
    float
        *scales; /* [layers, slots, K, positions, 2]: keys and values are bytes; NULL: they are T */
};

void cache_carve(const struct net *n, int slots, int positions, bool bytes, struct carve *m,
                 struct cache *out);
struct layer_cache {
    void *keys, *values;
    float *scales; /* NULL: there are none */
};
struct layer_cache cache_layer(const struct net *n, const struct cache *c, int layer);

#endif
