/* SPDX-License-Identifier: Apache-2.0
 *
 * arch.c: see arch.h.
 */
#include "model/arch.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

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

bool arch_is_uniform(const struct arch *a, int layers)
{
    for (int l = 1; l < layers; l++)
        if (memcmp(arch_layer(a, l), arch_layer(a, 0), sizeof(struct layer)) != 0)
            return false;
    return true;
}

void arch_keep(struct arch *a, const int *layers, int count)
{
    const struct arch old = *a;
    for (int i = 0; i < count; i++)
        a->kind_of[i] = old.kind_of[layers[i]];
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

float block_score_scale(const struct block *b)
{
    return 1.0f / sqrtf((float)b->head_dim);
}

double block_attention_flops(const struct block *b, double seq_len)
{
    /* Query i of those from 1 on sees min(i, most) keys. */
    const double most = b->window > 0 && b->window < seq_len ? b->window : seq_len;
    const double keys = most - most * (most - 1) / 2 / seq_len;
    return 4.0 * b->heads * b->head_dim * keys;
}

double rope_frequency(const struct rope *r, int head_dim, int i)
{
    return pow(r->theta, -2.0 * i / head_dim);
}

double rope_slowing(const struct rope *r, int head_dim, int i)
{
    const struct rope_scaling *s = &r->scaling;
    if (!(s->factor > 0))
        return 1;
    const double turns = s->original_positions * rope_frequency(r, head_dim, i) / 6.283185307179586;
    double blend = (turns - s->low_freq_factor) / (s->high_freq_factor - s->low_freq_factor);
    blend = fmin(fmax(blend, 0.0), 1.0);
    return (1.0 - blend) / s->factor + blend;
}
