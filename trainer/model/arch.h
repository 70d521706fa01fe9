/* SPDX-License-Identifier: Apache-2.0
 *
 * arch.h: a model as layers, each a list of blocks with their sizes. Readers of configurations fill it; names of
 * tensors, counts of parameters and operations and the targets of adapters are made from it. Code asks which blocks a
 * layer has, never for the family.
 *
 * A new kind of block is a value of block_kind, its sizes in struct block, its tensors in tensor_names.c and its
 * operations in arch.c; net/block.h has what it computes. Layers that differ in a size, such as a window or a number of
 * heads, are kinds of layers.
 */
#ifndef NOJIT_TRAINER_ARCH_H
#define NOJIT_TRAINER_ARCH_H

#include "base/features.h"
#include "base/route.h"
#include "model/rope.h"

#include <stdbool.h>
#include <stdint.h>

/* A block reads the residual stream, computes, and adds its output to the stream; its input, its output or both are
 * normalized. A layer has at most one block of each kind. */
enum block_kind {
    BLOCK_ATTENTION,
    BLOCK_GLU,     /* gated MLP: down(act(gate x) * up x) */
    BLOCK_EXPERTS, /* gated MLPs, of which a router chooses some for each row; their weighted sum */
    BLOCK_CONV, /* gated short convolution: out(c * conv(b * x)), where b, c and x are thirds of a product */
    BLOCK_DELTA, /* gated delta rule: out(norm(delta(silu(conv(q, k, v)), b, a)) * silu(z)) */
    BLOCK_KINDS
};

struct block {
    enum block_kind kind;
    unsigned features; /* FEATURE_BIT() of each feature that it has */
    float gain_offset; /* number added to the gains of its norms: 1 where files hold gain - 1 */
    /* BLOCK_ATTENTION: number of query heads and of key heads, and their size; BLOCK_DELTA: number of value heads and
     * of key heads, which are queries' as well, and the size of all */
    int heads, kv_heads, head_dim;
    /* BLOCK_ATTENTION: number of keys that a query sees, its own among them (0: all); table of its rotation, a row of
     * arch.rope; factor of the scores (0: 1 / sqrt(D)) */
    int window, rope;
    float score_scale;
    /* BLOCK_GLU, and each of BLOCK_EXPERTS: number of rows of gate and of up; activation, a row of hidden_acts */
    int ffn_size, act;
    /* BLOCK_EXPERTS: number of experts, and of those that a row takes; rule of their choice; whether their weights are
     * divided by their sum */
    int experts, experts_used;
    enum nj_route router;
    bool renormalized;
    /* number of groups of experts, and of those that a row may choose from; 0: all are one group; factor of the
     * weights (0 counts as 1), and number added to the sum that they are divided by (0 counts as the least that keeps
     * 0 / 0 away) */
    int groups, groups_used;
    float route_scale, route_eps;
    /* number of rows of gate of the expert that all rows take; 0: there is none */
    int shared_size;
    /* bound of gate and up, and factor of the gate within its sigmoid, as in expert_glu_clamped; 0: a plain MLP */
    float glu_limit, glu_alpha;
    /* BLOCK_CONV: number of channels. BLOCK_CONV and BLOCK_DELTA: number of rows that a row of a convolution is
     * computed from, its own among them */
    int channels, taps;
};

enum { LAYERS_MOST = 1024, LAYER_KINDS_MOST = 8, LAYER_BLOCKS_MOST = BLOCK_KINDS, ROPES_MOST = 2 };

struct layer {
    int blocks;
    struct block block[LAYER_BLOCKS_MOST]; /* blocks in the order in which they are computed */
};

struct arch {
    struct layer kind[LAYER_KINDS_MOST];
    uint8_t kind_of[LAYERS_MOST]; /* row of `kind` for each layer */
    struct rope rope[ROPES_MOST];
};

/* The layer of attention with H query heads, K key heads of size D and these features, and a gated MLP of SiLU, each
 * with a norm before it. */
#define LAYER_PLAIN(H, K, D, ffn, attention_features)                                              \
    {                                                                                              \
        2,                                                                                         \
        {                                                                                          \
            {BLOCK_ATTENTION, (attention_features) | NORMED_BEFORE, .heads = (H), .kv_heads = (K), \
             .head_dim = (D)},                                                                     \
            {                                                                                      \
                BLOCK_GLU, NORMED_BEFORE, .ffn_size = (ffn)                                        \
            }                                                                                      \
        }                                                                                          \
    }

/* Return the layer, which lists its blocks. */
const struct layer *arch_layer(const struct arch *a, int layer);
/* Return the block of a kind in a layer; NULL: it has none. */
const struct block *arch_block(const struct arch *a, int layer, enum block_kind kind);
/* Return the first block of a kind in the first `layers` layers; NULL: none has one. */
const struct block *arch_first(const struct arch *a, int layers, enum block_kind kind);
/* Return the first block with attention, which every model that passes config_check() has. */
const struct block *arch_attention(const struct arch *a, int layers);
/* Return the recurrent block of a layer, which stands in the place of attention; NULL: it has none. */
const struct block *arch_recurrent(const struct arch *a, int layer);
/* Return the block of a layer that mixes rows: attention, or a recurrent one; NULL: it has none. */
const struct block *arch_mixer(const struct arch *a, int layer);
/* Return the MLP of a layer, of either kind; NULL: it has none. */
const struct block *arch_mlp(const struct arch *a, int layer);
/* Return whether two layers have the same blocks, with the same sizes. */
bool layers_are_alike(const struct layer *a, const struct layer *b);
/* Return whether all of the first `layers` layers are alike. */
bool arch_is_uniform(const struct arch *a, int layers);
/* Keep the layers of a model that are named: layer i becomes the former layer layers[i]. */
void arch_keep(struct arch *a, const int *layers, int count);
/* Give a model of `from` layers `to` of them: further ones are of the kinds of the first ones in turn. */
void arch_repeat(struct arch *a, int from, int to);
/* Return the largest size of a block in the first `layers` layers. */
int64_t arch_most(const struct arch *a, int layers, int64_t (*size)(const struct block *b));
/* Return whether the block has the feature. */
bool block_has(const struct block *b, enum feature feature);
/* Return the number of rows of the product of queries, keys and values, (H + 2K) D; 0 for a block without one. */
int64_t block_qkv_size(const struct block *b);
/* Return the number of channels of its convolution; 0 for a block without one. */
int block_channels(const struct block *b);
/* Return the number of rows of gate that a token takes, of all its experts, the shared one among them; 0 for a block
 * without an MLP. */
int64_t block_ffn_used(const struct block *b);
/* Return the factor of the scores of its attention. */
float block_score_scale(const struct block *b);
/* Return the number of operations that attention takes on average for a query of a sequence, a score and a sum of
 * values for each head and key that it sees; or that the delta rule takes for a row; 0 for other blocks. */
double block_attention_flops(const struct block *b, double seq_len);
/* Return the size of the heads that the kernels compute with: 64, 128 or 256 elements, of which those behind the first
 * head_dim are zeros. */
int block_padded_dim(const struct block *b);
/* Return whether heads are mapped to the kernels' layout, in which the two elements of a pair lie half a head apart and
 * heads are padded. */
bool arch_maps_heads(const struct arch *a, const struct block *b);
/* Return whether heads of the block's size can be computed, and which sizes can, in words. Kernels have heads of 64,
 * 128 and 256 elements; others are padded with zeros, which a norm over a head would count. */
bool block_heads_fit(const struct block *b);
const char *block_head_sizes(const struct block *b);

#endif
