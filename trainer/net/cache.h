/* SPDX-License-Identifier: Apache-2.0
 *
 * cache.h: what a decoder keeps of its sequences: the KV cache, and the states of recurrent blocks.
 */
#ifndef NOJIT_TRAINER_CACHE_H
#define NOJIT_TRAINER_CACHE_H

#include "net/carve.h"
#include "net/net.h"

/* KV cache with one sequence per slot. Keys of a layer are [slots, K, places, D], values [slots, K, places / 32, D,
 * 32], in the layout of kv_store and attn_decode, or kv_store_q8 and attn_decode_q8 (base/decode.h). A layer with a
 * window has fewer places than a sequence has positions, if those that its rows see fit. A step overwrites a position
 * that no later one sees, so a sequence cannot go back to a position before its newest. */
struct cache {
    int slots, positions; /* number of slots, and of positions of a sequence */
    char *keys, *values;  /* keys and values of the layers, one layer after another */
    size_t element;       /* bytes of an element */
    /* States of the recurrent layers, as conv_step and delta_step read them: of each the rows before the next one of
     * its convolution, [slots, L - 1, X], then of the delta rule [slots, H, D, D]. A step overwrites its sequence's; at
     * position 0 it reads nothing, so that a slot begins anew. */
    float *states;
    /* [slots, K, places, 2] scales of keys and values of each layer; NULL: they are T */
    float *scales;
};

/* Take the memory of a cache. bytes: keys and values are stored as 8-bit integers. */
void cache_carve(const struct net *n, int slots, int positions, bool bytes, struct carve *m,
                 struct cache *out);
/* The part of one layer. */
struct layer_cache {
    void *keys, *values;
    float *scales; /* scales of the layer; NULL: there are none */
    int places;    /* number of positions that a slot of the layer keeps */
    float *conv;   /* states of the layer's convolution */
    float *delta;  /* states of its delta rule */
};
/* Return the part of a layer. */
struct layer_cache cache_layer(const struct net *n, const struct cache *c, int layer);

#endif
