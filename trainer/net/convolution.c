/* SPDX-License-Identifier: Apache-2.0
 *
 * convolution.c: see convolution.h.
 */
#include "net/convolution.h"

#include "net/cache.h"
#include "net/norm.h"
#include "nojit_ops.h"

void convolution_fwd(struct work *r, const struct block_pass *p, const struct convolution *c)
{
    const struct acts *a = p->a;
    OP(r, nj_conv_fwd(r->s, p->n->T,
                      &(struct nj_conv_fwd){.y = c->y,
                                            .x = c->x,
                                            .w = block_weight(p, c->taps),
                                            .bias = NULL,
                                            .gate_in = c->gate_in,
                                            .gate_out = c->gate_out,
                                            .doc_start = p->rows->doc_start,
                                            .B = a->B,
                                            .S = a->S,
                                            .X = c->channels,
                                            .L = p->b->taps,
                                            .ld = c->ld,
                                            .act = c->act}));
}

void convolution_step(struct work *r, const struct block_pass *p, const struct convolution *c)
{
    const struct acts *a = p->a;
    OP(r, nj_conv_step(r->s, p->n->T,
                       &(struct nj_conv_step){.y = c->y,
                                              .state = cache_layer(p->n, a->cache, p->layer).conv,
                                              .x = c->x,
                                              .w = block_weight(p, c->taps),
                                              .bias = NULL,
                                              .gate_in = c->gate_in,
                                              .gate_out = c->gate_out,
                                              .slot = p->rows->slot,
                                              .pos = p->rows->pos,
                                              .R = acts_rows(a),
                                              .X = c->channels,
                                              .L = p->b->taps,
                                              .ld = c->ld,
                                              .G = a->cache->slots,
                                              .act = c->act}));
}

void convolution_store(struct work *r, const struct block_pass *p, const struct convolution *c)
{
    const struct acts *a = p->a;
    OP(r, nj_conv_store(r->s, p->n->T,
                        &(struct nj_conv_store){.state = cache_layer(p->n, a->cache, p->layer).conv,
                                                .x = c->x,
                                                .gate_in = c->gate_in,
                                                .doc_start = p->rows->doc_start,
                                                .slot = p->rows->slot,
                                                .B = a->B,
                                                .S = a->S,
                                                .X = c->channels,
                                                .L = p->b->taps,
                                                .ld = c->ld,
                                                .G = a->cache->slots}));
}

void convolution_bwd(struct work *r, const struct block_pass *p, const struct convolution *c,
                     const struct convolution_gradients *g)
{
    const struct acts *a = p->a;
    const int N = acts_rows(a), L = p->b->taps;
    OP(r, nj_conv_bwd(r->s, p->n->T,
                      &(struct nj_conv_bwd){.dx = g->dx,
                                            .dgate_in = g->dgate_in,
                                            .dgate_out = g->dgate_out,
                                            .dw_part = a->part,
                                            .dbias_part = NULL,
                                            .dy = g->dy,
                                            .x = c->x,
                                            .w = block_weight(p, c->taps),
                                            .bias = NULL,
                                            .gate_in = c->gate_in,
                                            .gate_out = c->gate_out,
                                            .doc_start = p->rows->doc_start,
                                            .B = a->B,
                                            .S = a->S,
                                            .X = c->channels,
                                            .L = L,
                                            .ld = c->ld,
                                            .P = partial_sums(N),
                                            .act = c->act}));
    norm_add_columns(r, p->n, p->first[c->taps], a->part, N, c->channels * L);
}
