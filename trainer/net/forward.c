/* SPDX-License-Identifier: Apache-2.0
 *
 * forward.c: the forward pass of one transformer. The residual stream s1 -> s2 -> s1 of the next layer passes through
 * add_rmsnorm, which adds a branch and normalizes in one kernel; a->y holds the normed rows that the next product
 * reads. If that GEMM has FP8 operands, norm and activation write its operand to a->x instead (product_x_made); the
 * final norm is always T.
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

/* Run attention of the next row of each sequence over those in the cache, which gets its keys and values. Without a
 * norm of heads the kernel also rotates the row, and qkv stays as the GEMM left it: the number of kernels limits
 * the speed of a step. */
static void attention_cached(struct work *r, const struct net *n, const struct acts *a,
                             const struct rows *rows, int layer, const struct layer_acts *v,
                             const void *bias)
{
    const struct model_config *c = &n->c;
    const float *inv_freq = c->qk_norm ? NULL : n->inv_freq;
    const struct cache *to = a->cache;
    const struct layer_cache l = cache_layer(n, to, layer);
    if (l.scales)
        OP(r, nj_attn_decode_q8(r->s, n->T, c->head_dim,
                                &(struct nj_attn_decode_q8){.o = v->o,
                                                            .part = a->chunk_sums,
                                                            .k = l.keys,
                                                            .v = l.values,
                                                            .kv_scale = l.scales,
                                                            .qkv = v->qkv,
                                                            .bias = bias,
                                                            .inv_freq = inv_freq,
                                                            .slot = rows->slot,
                                                            .pos = rows->pos,
                                                            .R = acts_rows(a),
                                                            .H = c->heads,
                                                            .K = c->kv_heads,
                                                            .P = to->positions,
                                                            .G = to->slots,
                                                            .C = a->chunks,
                                                            .scale = score_scale(c)}));
    else
        OP(r, nj_attn_decode(r->s, n->T, c->head_dim,
                             &(struct nj_attn_decode){.o = v->o,
                                                      .part = a->chunk_sums,
                                                      .k = l.keys,
                                                      .v = l.values,
                                                      .qkv = v->qkv,
                                                      .bias = bias,
                                                      .inv_freq = inv_freq,
                                                      .slot = rows->slot,
                                                      .pos = rows->pos,
                                                      .R = acts_rows(a),
                                                      .H = c->heads,
                                                      .K = c->kv_heads,
                                                      .P = to->positions,
                                                      .G = to->slots,
                                                      .C = a->chunks,
                                                      .scale = score_scale(c)}));
    if (a->chunks > 1)
        OP(r, nj_attn_decode_merge(r->s, n->T, c->head_dim,
                                   &(struct nj_attn_decode_merge){.o = v->o,
                                                                  .part = a->chunk_sums,
                                                                  .slot = rows->slot,
                                                                  .pos = rows->pos,
                                                                  .R = acts_rows(a),
                                                                  .H = c->heads,
                                                                  .C = a->chunks}));
}

/* Compute qkv = rotate(norm(raw + bias)), in place if no backward pass needs raw; with a norm there is no bias. */
static void rotate(struct work *r, const struct net *n, const struct acts *a,
                   const struct rows *rows, int layer, const void *bias)
{
    const struct model_config *c = &n->c;
    const struct layer_params *w = &n->p.layer[layer];
    const struct layer_acts v = acts_layer(n, a, layer);
    const int N = acts_rows(a);
    if (c->qk_norm)
        OP(r, nj_qknorm_rope_fwd(r->s, n->T,
                                 &(struct nj_qknorm_rope_fwd){.y = v.qkv,
                                                              .rstd = v.rstd_qk,
                                                              .x = v.raw,
                                                              .wq = net_weight(n, w->qnorm),
                                                              .wk = net_weight(n, w->knorm),
                                                              .inv_freq = n->inv_freq,
                                                              .pos = rows->pos,
                                                              .N = N,
                                                              .H = c->heads,
                                                              .K = c->kv_heads,
                                                              .D = c->head_dim,
                                                              .eps = c->rms_eps}));
    else
        OP(r, nj_rope_fwd(r->s, n->T,
                          &(struct nj_rope_fwd){.qkv = v.qkv,
                                                .bias = bias,
                                                .inv_freq = n->inv_freq,
                                                .pos = rows->pos,
                                                .N = N,
                                                .H = c->heads,
                                                .K = c->kv_heads,
                                                .D = c->head_dim}));
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
    OP(r, nj_attn_fwd(r->s, n->T, c->head_dim,
                      &(struct nj_attn_fwd){.o = v.o,
                                            .lse = v.lse,
                                            .qkv = v.qkv,
                                            .doc_start = rows->doc_start,
                                            .B = a->B,
                                            .S = a->S,
                                            .H = c->heads,
                                            .K = c->kv_heads,
                                            .scale = score_scale(c)}));
    if (!a->cache)
        return;
    const struct layer_cache l = cache_layer(n, a->cache, layer);
    if (l.scales)
        OP(r, nj_kv_store_q8(r->s, n->T, c->head_dim,
                             &(struct nj_kv_store_q8){.k = l.keys,
                                                      .v = l.values,
                                                      .kv_scale = l.scales,
                                                      .qkv = v.qkv,
                                                      .slot = rows->slot,
                                                      .pos = rows->pos,
                                                      .N = acts_rows(a),
                                                      .H = c->heads,
                                                      .K = c->kv_heads,
                                                      .P = a->cache->positions,
                                                      .G = a->cache->slots}));
    else
        OP(r, nj_kv_store(r->s, n->T, c->head_dim,
                          &(struct nj_kv_store){.k = l.keys,
                                                .v = l.values,
                                                .qkv = v.qkv,
                                                .slot = rows->slot,
                                                .pos = rows->pos,
                                                .N = acts_rows(a),
                                                .H = c->heads,
                                                .K = c->kv_heads,
                                                .P = a->cache->positions,
                                                .G = a->cache->slots}));
}

/* Compute s_next = s + branch, and its norm, as E4M3 if `made`. */
static void add_norm(struct work *r, const struct net *n, struct acts *a, void *s_next, float *rstd,
                     const void *s, int64_t gain, bool made)
{
    const int N = acts_rows(a), C = n->c.hidden_size;
    const void *w = net_weight(n, gain);
    if (made)
        OP(r, nj_add_rmsnorm_quantize(r->s, n->T,
                                      &(struct nj_add_rmsnorm_quantize){.q = a->x.q,
                                                                        .scale = a->x.scale,
                                                                        .s = s_next,
                                                                        .rstd = rstd,
                                                                        .x = s,
                                                                        .b = a->branch,
                                                                        .w = w,
                                                                        .N = N,
                                                                        .C = C,
                                                                        .eps = n->c.rms_eps}));
    else
        OP(r, nj_add_rmsnorm_fwd(r->s, n->T,
                                 &(struct nj_add_rmsnorm_fwd){.y = a->y,
                                                              .s = s_next,
                                                              .rstd = rstd,
                                                              .x = s,
                                                              .b = a->branch,
                                                              .w = w,
                                                              .N = N,
                                                              .C = C,
                                                              .eps = n->c.rms_eps}));
}

/* Compute the normed rows that the MLP reads from the normed input in a->y. */
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
        OP(r,
           nj_rmsnorm_fwd(
               r->s, n->T,
               &(struct nj_rmsnorm_fwd){
                   .y = a->y, .rstd = rstd, .x = x, .w = w, .N = N, .C = C, .eps = n->c.rms_eps}));
        return;
    }
    OP(r, nj_rmsnorm_quantize(r->s, n->T,
                              &(struct nj_rmsnorm_quantize){.q = a->x.q,
                                                            .scale = a->x.scale,
                                                            .top = top,
                                                            .rstd = rstd,
                                                            .x = x,
                                                            .w = w,
                                                            .N = N,
                                                            .C = C,
                                                            .eps = n->c.rms_eps}));
}

/* Write the product of a->y and the weights of gate and up to gu, and return false. If one kernel multiplies and
 * activates, write a->act, and gu only if a backward pass will read it, and return true. Recomputation, and passes
 * that keep nothing, go the same way as training, so their bits are the same. */
static bool gate_up(struct work *r, const struct net *n, struct acts *a, int layer, char *gu)
{
    const struct model_config *c = &n->c;
    const bool fused = a->mode != ACTS_DECODE && activation_fused(r, n);
    const void *w = fused ? product_weight(r, n, a, layer, PRODUCT_GATE_UP) : NULL;
    if (!w) {
        product_fwd(r, n, a, layer, PRODUCT_GATE_UP, gu, a->y);
        return false;
    }
    OP(r,
       nj_gemm_swiglu(r->s, n->T,
                      &(struct nj_gemm_swiglu){.act = a->act,
                                               .gu = a->mode == ACTS_TRAIN ? gu : NULL,
                                               .x = a->y,
                                               .w = w,
                                               .N = acts_rows(a),
                                               .I = c->intermediate_size,
                                               .C = c->hidden_size,
                                               .P = nj_context_device(r->ctx)->multiprocessors}));
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
