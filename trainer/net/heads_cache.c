/* SPDX-License-Identifier: Apache-2.0
 *
 * heads_cache.c: see heads.h. Without a norm of heads the kernel of a step also rotates the row, and QKV stays as the
 * GEMM left it: the number of kernels limits the speed of a step.
 */
#include "net/cache.h"
#include "net/heads.h"
#include "net/tables.h"
#include "nojit_ops.h"

void heads_attend_cached(struct work *r, const struct block_pass *p, const void *bias)
{
    const struct block *b = p->b;
    const struct acts *a = p->a;
    const enum nj_dtype T = p->n->T;
    const float *inv_freq = heads_are_normed(b) ? NULL : tables_frequencies(p->n, b);
    const void *sink = block_weight(p, ROLE_SINKS);
    const struct cache *to = a->cache;
    const struct layer_cache l = cache_layer(p->n, to, p->layer);
    if (l.scales)
        OP(r, nj_attn_decode_q8(r->s, T, block_padded_dim(b),
                                &(struct nj_attn_decode_q8){.o = p->v.kept[O],
                                                            .part = a->chunk_sums,
                                                            .k = l.keys,
                                                            .v = l.values,
                                                            .kv_scale = l.scales,
                                                            .qkv = p->v.kept[QKV],
                                                            .bias = bias,
                                                            .inv_freq = inv_freq,
                                                            .sink = sink,
                                                            .slot = p->rows->slot,
                                                            .pos = p->rows->pos,
                                                            .R = acts_rows(a),
                                                            .H = b->heads,
                                                            .K = b->kv_heads,
                                                            .P = l.places,
                                                            .G = to->slots,
                                                            .C = a->chunks,
                                                            .window = b->window,
                                                            .scale = block_score_scale(b),
                                                            .amplitude = heads_amplitude(p)}));
    else
        OP(r, nj_attn_decode(r->s, T, block_padded_dim(b),
                             &(struct nj_attn_decode){.o = p->v.kept[O],
                                                      .part = a->chunk_sums,
                                                      .k = l.keys,
                                                      .v = l.values,
                                                      .qkv = p->v.kept[QKV],
                                                      .bias = bias,
                                                      .inv_freq = inv_freq,
                                                      .sink = sink,
                                                      .slot = p->rows->slot,
                                                      .pos = p->rows->pos,
                                                      .R = acts_rows(a),
                                                      .H = b->heads,
                                                      .K = b->kv_heads,
                                                      .P = l.places,
                                                      .G = to->slots,
                                                      .C = a->chunks,
                                                      .window = b->window,
                                                      .scale = block_score_scale(b),
                                                      .amplitude = heads_amplitude(p)}));
    if (a->chunks > 1)
        OP(r, nj_attn_decode_merge(r->s, T, block_padded_dim(b),
                                   &(struct nj_attn_decode_merge){.o = p->v.kept[O],
                                                                  .part = a->chunk_sums,
                                                                  .sink = sink,
                                                                  .slot = p->rows->slot,
                                                                  .pos = p->rows->pos,
                                                                  .R = acts_rows(a),
                                                                  .H = b->heads,
                                                                  .C = a->chunks,
                                                                  .window = b->window}));
}

void heads_store(struct work *r, const struct block_pass *p)
{
    const struct block *b = p->b;
    const struct cache *to = p->a->cache;
    const struct layer_cache l = cache_layer(p->n, to, p->layer);
    if (l.scales)
        OP(r, nj_kv_store_q8(r->s, p->n->T, block_padded_dim(b),
                             &(struct nj_kv_store_q8){.k = l.keys,
                                                      .v = l.values,
                                                      .kv_scale = l.scales,
                                                      .qkv = p->v.kept[QKV],
                                                      .slot = p->rows->slot,
                                                      .pos = p->rows->pos,
                                                      .N = acts_rows(p->a),
                                                      .H = b->heads,
                                                      .K = b->kv_heads,
                                                      .P = l.places,
                                                      .G = to->slots}));
    else
        OP(r, nj_kv_store(r->s, p->n->T, block_padded_dim(b),
                          &(struct nj_kv_store){.k = l.keys,
                                                .v = l.values,
                                                .qkv = p->v.kept[QKV],
                                                .slot = p->rows->slot,
                                                .pos = p->rows->pos,
                                                .N = acts_rows(p->a),
                                                .H = b->heads,
                                                .K = b->kv_heads,
                                                .P = l.places,
                                                .G = to->slots}));
}
