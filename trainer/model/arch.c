/* SPDX-License-Identifier: Apache-2.0
 *
 * arch.c: see arch.h.
 */
#include "base/delta.h"
#include "model/config.h"

#include <math.h>
#include <stddef.h>

const struct layer *arch_layer(const struct arch *a, int layer)
{
    return &a->kind[a->kind_of[layer]];
}

const struct block *arch_block(const struct arch *a, int layer, enum block_kind kind)
{
    const struct layer *l = arch_layer(a, layer);
    for (int b = 0; b < l->blocks; b++)
        if (l->block[b].kind == kind)
            return &l->block[b];
    return NULL;
}

const struct block *arch_first(const struct arch *a, int layers, enum block_kind kind)
{
    for (int l = 0; l < layers; l++)
        if (arch_block(a, l, kind))
            return arch_block(a, l, kind);
    return NULL;
}

const struct block *arch_attention(const struct arch *a, int layers)
{
    return arch_first(a, layers, BLOCK_ATTENTION);
}

const struct block *arch_recurrent(const struct arch *a, int layer)
{
    const struct block *b = arch_block(a, layer, BLOCK_CONV);
    return b ? b : arch_block(a, layer, BLOCK_DELTA);
}

const struct block *arch_mixer(const struct arch *a, int layer)
{
    const struct block *b = arch_block(a, layer, BLOCK_ATTENTION);
    return b ? b : arch_recurrent(a, layer);
}

const struct block *arch_mlp(const struct arch *a, int layer)
{
    const struct block *b = arch_block(a, layer, BLOCK_GLU);
    return b ? b : arch_block(a, layer, BLOCK_EXPERTS);
}

static bool blocks_are_alike(const struct block *a, const struct block *b)
{
    return a->kind == b->kind && a->features == b->features && a->gain_offset == b->gain_offset &&
           a->heads == b->heads && a->kv_heads == b->kv_heads && a->head_dim == b->head_dim &&
           a->window == b->window && a->rope == b->rope && a->score_scale == b->score_scale &&
           a->ffn_size == b->ffn_size && a->act == b->act && a->experts == b->experts &&
           a->experts_used == b->experts_used && a->router == b->router &&
           a->renormalized == b->renormalized && a->shared_size == b->shared_size &&
           a->groups == b->groups && a->groups_used == b->groups_used &&
           a->route_scale == b->route_scale && a->route_eps == b->route_eps &&
           a->glu_limit == b->glu_limit && a->glu_alpha == b->glu_alpha &&
           a->channels == b->channels && a->taps == b->taps;
}

bool layers_are_alike(const struct layer *a, const struct layer *b)
{
    bool alike = a->blocks == b->blocks;
    for (int i = 0; alike && i < a->blocks; i++)
        alike = blocks_are_alike(&a->block[i], &b->block[i]);
    return alike;
}

bool arch_is_uniform(const struct arch *a, int layers)
{
    for (int l = 1; l < layers; l++)
        if (!layers_are_alike(arch_layer(a, l), arch_layer(a, 0)))
            return false;
    return true;
}

void arch_keep(struct arch *a, const int *layers, int count)
{
    const struct arch old = *a;
    for (int i = 0; i < count; i++)
        a->kind_of[i] = old.kind_of[layers[i]];
}

void arch_repeat(struct arch *a, int from, int to)
{
    for (int l = from; l < to && l < LAYERS_MOST; l++)
        a->kind_of[l] = a->kind_of[l - from];
}

int64_t arch_most(const struct arch *a, int layers, int64_t (*size)(const struct block *b))
{
    int64_t most = 0;
    for (int l = 0; l < layers; l++) {
        const struct layer *layer = arch_layer(a, l);
        for (int b = 0; b < layer->blocks; b++)
            most = size(&layer->block[b]) > most ? size(&layer->block[b]) : most;
    }
    return most;
}

bool block_has(const struct block *b, enum feature feature)
{
    return (b->features & FEATURE_BIT(feature)) != 0;
}

int64_t block_qkv_size(const struct block *b)
{
    return ((int64_t)b->heads + 2 * (int64_t)b->kv_heads) * b->head_dim;
}

int block_channels(const struct block *b)
{
    return b->kind == BLOCK_DELTA ? (int)block_qkv_size(b) : b->channels;
}

int64_t block_ffn_used(const struct block *b)
{
    return (int64_t)b->ffn_size * (b->kind == BLOCK_EXPERTS ? b->experts_used : 1) + b->shared_size;
}

float block_score_scale(const struct block *b)
{
    return b->score_scale > 0 ? b->score_scale : 1.0f / sqrtf((float)b->head_dim);
}

/* Return the operations of delta_solve and delta_fwd for a row (their contracts' cost). */
static double delta_flops(const struct block *b)
{
    const double D = b->head_dim, chunk = DELTA_CHUNK;
    return b->heads * (4 * chunk * D + chunk * chunk / 3 + 2 * D * (3 * D + 2 * chunk));
}

double block_attention_flops(const struct block *b, double seq_len)
{
    if (b->kind == BLOCK_DELTA)
        return delta_flops(b);
    /* Query i of those from 1 on sees min(i, most) keys. */
    const double most = b->window > 0 && b->window < seq_len ? b->window : seq_len;
    const double keys = most - most * (most - 1) / 2 / seq_len;
    return 4.0 * b->heads * b->head_dim * keys;
}

int block_padded_dim(const struct block *b)
{
    static const int sizes[] = {64, 128, 256};
    int i = 0;
    while (sizes[i] < b->head_dim)
        i++;
    return sizes[i];
}

bool arch_maps_heads(const struct arch *a, const struct block *b)
{
    const struct rope *r = &a->rope[b->rope];
    const int rotary = rope_rotary(r, b->head_dim);
    /* their reader has put the elements that rotate in the kernels' order */
    const bool ordered = block_has(b, FEATURE_GATED_Q);
    const bool other = rotary > 0 && !ordered && (r->neighbors || rotary != b->head_dim);
    return b->kind == BLOCK_ATTENTION && (other || block_padded_dim(b) != b->head_dim);
}

bool block_heads_fit(const struct block *b)
{
    const int size = b->head_dim;
    return size > 0 && size <= CONFIG_HEAD_DIM_MOST && size % 8 == 0 &&
           (!block_has(b, FEATURE_QK_NORM) || size == block_padded_dim(b));
}

const char *block_head_sizes(const struct block *b)
{
    return block_has(b, FEATURE_QK_NORM) ? "64, 128 and 256" : "multiples of 8 up to 256";
}
