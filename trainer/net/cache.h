/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.h: the KV cache of a decoder.
 */
#ifndef NOJIT_TRAINER_CACHE_H
#define NOJIT_TRAINER_CACHE_H

#include "net/carve.h"
#include "net/net.h"

/* KV cache with one sequence per slot. Keys of a layer are [slots, K, positions, D], values [slots, K, positions /
 * 32, D, 32], in the layout of kv_store and attn_decode, or kv_store_q8 and attn_decode_q8 (base/decode.h). */
struct cache {
    int slots, positions;
    char *keys, *values; /* keys and values of the layers, one layer after another */
    size_t element;      /* bytes of an element */
    float *
        scales; /* [slots, K, positions, 2] scales of keys and values of each layer; NULL: they are T */
};

void cache_carve(const struct net *n, int slots, int positions, bool bytes, struct carve *m,
                 struct cache *out);
struct layer_cache {
    void *keys, *values;
    float *scales; /* scales of the layer; NULL: there are none */
};
struct layer_cache cache_layer(const struct net *n, const struct cache *c, int layer);

#endif
