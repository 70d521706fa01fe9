/* SPDX-License-Identifier: Apache-2.0
 *
 * forward.c: one transformer, forward. The residual stream s1 -> s2 -> s1 of the next layer passes
 * through add_rmsnorm, which adds a branch and normalises in one kernel; a->y holds the normed rows
 * that the next product reads. Where that GEMM has FP8 operands, norm and activation write what it
 * reads to a->x instead (product_x_made); the final norm is as always.
 */
#include "net/forward.h"

#include "net/activation.h"
#include "net/cache.h"
#include "net/layer_gemm.h"
#include "net/student_f8.h"
#include "net/teacher_shard.h"
#include "nojit_ops.h"

#include <math.h>

static float score_scale(const struct model_config *c)
{
    return 1.0f / sqrtf((float)c->head_dim);
}

/* Of the next row of each sequence over those in the cache, which gets its keys and values. Without a norm of heads
 * the kernel rotates the row, too, and qkv stays as the GEMM left it: a step is bound by the number of its kernels. */
static void attention_cached(struct work *r, const struct net *n, const struct acts *a,
                             const struct rows *rows, int layer, const struct layer_acts *v,
                             const void *bias)
{
    const struct model_config *c = &n->c;
    const float *inv_freq = c->qk_norm ? NULL : n->inv_freq;
    const struct cache *to = a->cache;
    const struct layer_cache l = cache_layer(n, to, layer);
    if (l.scales)
        OP(r, nj_attn_decode_q8(r->s, n->T, c->head_dim, v->o, a->chunk_sums, l.keys, l.values,
                                l.scales, v->qkv, bias, inv_freq, rows->slot, rows->pos,
                                acts_rows(a), c->heads, c->kv_heads, to->positions, to->slots,
                                a->chunks, score_scale(c)));
    else
        OP(r, nj_attn_decode(r->s, n->T, c->head_dim, v->o, a->chunk_sums, l.keys, l.values, v->qkv,
                             bias, inv_freq, rows->slot, rows->pos, acts_rows(a), c->heads,
                             c->kv_heads, to->positions, to->slots, a->chunks, score_scale(c)));
    if (a->chunks > 1)
        OP(r, nj_attn_decode_merge(r->s, n->T, c->head_dim, v->o, a->chunk_sums, rows->slot,
                                   rows->pos, acts_rows(a), c->heads, a->chunks));
}

/* qkv = rotate(norm(raw + bias)), in place where no backward pass needs raw; with a norm there is no bias. */
static void rotate(struct work *r, const struct net *n, const struct acts *a,
                   const struct rows *rows, int layer, const void *bias)
{
    const struct model_config *c = &n->c;
    const struct layer_params *w = &n->p.layer[layer];
    const struct layer_acts v = acts_layer(n, a, layer);
    const int N = acts_rows(a);
    if (c->qk_norm)
        OP(r, nj_qknorm_rope_fwd(r->s, n->T, v.qkv, v.rstd_qk, v.raw, net_weight(n, w->qnorm),
                                 net_weight(n, w->knorm), n->inv_freq, rows->pos, N, c->heads,
                                 c->kv_heads, c->head_dim, c->rms_eps));
    else
        OP(r, nj_rope_fwd(r->s, n->T, v.qkv, bias, n->inv_freq, rows->pos, N, c->heads, c->kv_heads,
                          c->head_dim));
}

void net_attention(struct work *r, const struct net *n, const struct acts *a,
                   const struct rows *rows, int layer, const void *bias)
{
    const struct model_config *c = &n->c;
    const struct layer_acts v = acts_layer(n, a, layer);
    const bool decoding = a->mode == ACTS_DECODE;
    if (!decoding || c->qk_norm)
        rotate(r, n, a, rows, layer, bias);
    if (decoding) {
        attention_cached(r, n, a, rows, layer, &v, bias);
        return;
    }
    OP(r, nj_attn_fwd(r->s, n->T, c->head_dim, v.o, v.lse, v.qkv, rows->doc_start, a->B, a->S,
                      c->heads, c->kv_heads, score_scale(c)));
    if (!a->cache)
        return;
    const struct layer_cache l = cache_layer(n, a->cache, layer);
    if (l.scales)
        OP(r, nj_kv_store_q8(r->s, n->T, c->head_dim, l.keys, l.values, l.scales, v.qkv, rows->slot,
                             rows->pos, acts_rows(a), c->heads, c->kv_heads, a->cache->positions,
                             a->cache->slots));
    else
        OP(r,
           nj_kv_store(r->s, n->T, c->head_dim, l.keys, l.values, v.qkv, rows->slot, rows->pos,
                       acts_rows(a), c->heads, c->kv_heads, a->cache->positions, a->cache->slots));
}

/* s_next = s + branch, and its norm, as e4m3 or not. */
static void add_norm(struct work *r, const struct net *n, struct acts *a, void *s_next, float *rstd,
                     const void *s, int64_t gain, bool made)
{
    const int N = acts_rows(a), C = n->c.hidden_size;
    const void *w = net_weight(n, gain);
    if (made)
        OP(r, nj_add_rmsnorm_quantize(r->s, n->T, a->x.q, a->x.scale, s_next, rstd, s, a->branch, w,
                                      N, C, n->c.rms_eps));
    else
        OP(r,
           nj_add_rmsnorm_fwd(r->s, n->T, a->y, s_next, rstd, s, a->branch, w, N, C, n->c.rms_eps));
}

/* From the normed input in a->y to the normed rows that the MLP reads. */
static void attention_half(struct work *r, const struct net *n, struct acts *a,
                           const struct rows *rows, int layer, const struct layer_acts *v)
{
    product_fwd(r, n, a, layer, PRODUCT_QKV, v->raw, a->y);
    net_attention(r, n, a, rows, layer, net_weight(n, n->p.layer[layer].bqkv));
    product_fwd(r, n, a, layer, PRODUCT_O, a->branch, v->o);
    add_norm(r, n, a, v->s2, v->rstd2, v->s1, n->p.layer[layer].ln2,
             product_x_made(n, a, layer, PRODUCT_GATE_UP));
}

void net_norm(struct work *r, const struct net *n, struct acts *a, int layer, enum product reader,
              float *top, const void *x, float *rstd)
{
    const struct layer_params *p = &n->p.layer[layer];
    const void *w = net_weight(n, reader == PRODUCT_QKV ? p->ln1 : p->ln2);
    const int N = acts_rows(a), C = n->c.hidden_size;
    if (!product_x_made(n, a, layer, reader)) {
        OP(r, nj_rmsnorm_fwd(r->s, n->T, a->y, rstd, x, w, N, C, n->c.rms_eps));
        return;
    }
    OP(r, nj_rmsnorm_quantize(r->s, n->T, a->x.q, a->x.scale, top, rstd, x, w, N, C, n->c.rms_eps));
}

/* Writes the product of a->y with the weights of gate and up to gu, and returns false. Where one
 * kernel multiplies and activates, writes a->act, and gu only if a backward pass will read it, and
 * returns true. Recomputation, and passes that keep nothing, go the same way as training, so their
 * bits are the same. */
static bool gate_up(struct work *r, const struct net *n, struct acts *a, int layer, char *gu)
{
    const struct model_config *c = &n->c;
    const bool fused = a->mode != ACTS_DECODE && activation_fused(r, n);
    const void *w = fused ? product_weight(r, n, a, layer, PRODUCT_GATE_UP) : NULL;
    if (!w) {
        product_fwd(r, n, a, layer, PRODUCT_GATE_UP, gu, a->y);
        return false;
    }
    OP(r, nj_gemm_swiglu(r->s, n->T, a->act, a->mode == ACTS_TRAIN ? gu : NULL, a->y, w,
                         acts_rows(a), c->intermediate_size, c->hidden_size,
                         nj_context_device(r->ctx)->multiprocessors));
    return true;
}

void net_forward_again(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                       int layer)
{
    const struct layer_acts v = acts_layer(n, a, layer);
    if (n->recompute == RECOMPUTE_NONE)
        return;
    if (n->recompute == RECOMPUTE_BLOCK) {
        net_norm(r, n, a, layer, PRODUCT_QKV, NULL, v.s1, v.rstd1);
        attention_half(r, n, a, rows, layer, &v);
    } else {
        net_norm(r, n, a, layer, PRODUCT_GATE_UP, NULL, v.s2, v.rstd2);
    }
    gate_up(r, n, a, layer, v.gu);
}

static void forward_layer(struct work *r, const struct net *n, struct acts *a,
                          const struct rows *rows, int layer)
{
    const struct model_config *c = &n->c;
    const struct layer_acts v = acts_layer(n, a, layer);
    const bool last = layer + 1 == c->layers, made = product_x_made(n, a, layer, PRODUCT_DOWN);

    attention_half(r, n, a, rows, layer, &v);
    if (!gate_up(r, n, a, layer, v.gu))
        (made ? activation_quantize : activation_fwd)(r, n, a, v.gu);
    product_fwd(r, n, a, layer, PRODUCT_DOWN, a->branch, a->act);
    add_norm(r, n, a, v.s1_next, v.rstd1_next, v.s2, last ? n->p.norm : n->p.layer[layer + 1].ln1,
             !last && product_x_made(n, a, layer + 1, PRODUCT_QKV));
}

void net_forward_embedding(struct work *r, const struct net *n, struct acts *a,
                           const struct rows *rows)
{
    const struct layer_acts first = acts_layer(n, a, 0);
    n->embedding->format->gather(r, n->embedding, first.s1, rows->ids, acts_rows(a));
    net_norm(r, n, a, 0, PRODUCT_QKV, NULL, first.s1, first.rstd1);
    teacher_shard_begin(r, n);
}

void net_forward_layers(struct work *r, const struct net *n, struct acts *a,
                        const struct rows *rows, int from, int to)
{
    for (int l = from; l < to; l++) {
        teacher_shard_ahead(r, n, l);
        forward_layer(r, n, a, rows, l);
        teacher_shard_arrive(r, n);
    }
}

void net_forward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows)
{
    net_forward_embedding(r, n, a, rows);
    net_forward_layers(r, n, a, rows, 0, n->c.layers);
}
