/* SPDX-License-Identifier: Apache-2.0
 *
 * backward.c: the backward pass of one transformer. dx is the gradient of the residual stream and is updated in
 * place; branch holds the gradient of the normed rows. Normed rows and activations are recomputed from what the
 * forward pass kept; products only if --recompute asks for it, by the code of forward.c. Gradients of weights go to
 * n->grad in float32; without it only those of adapters are computed.
 */
#include "net/backward.h"

#include "net/activation.h"
#include "net/forward.h"
#include "net/layer_gemm.h"
#include "net/student_f8.h"
#include "nojit_ops.h"

#include <math.h>

/* Add partial sums to the gradient of a gain or bias. */
static void add_columns(struct work *r, const struct net *n, int64_t first, const float *part,
                        int rows, int columns)
{
    if (n->grad)
        OP(r, nj_colsum(r->s, NJ_F32,
                        &(struct nj_colsum){.dst = n->grad + first,
                                            .part = part,
                                            .P = partial_sums(rows),
                                            .C = columns}));
}

/* Compute dx = dres + the gradient through the norm of x; a->branch is the gradient of its output. */
static void norm_bwd(struct work *r, const struct net *n, struct acts *a, int64_t gain,
                     const void *x, const float *rstd, const void *dres)
{
    int N = acts_rows(a), C = n->c.hidden_size;
    OP(r, nj_rmsnorm_bwd(r->s, n->T,
                         &(struct nj_rmsnorm_bwd){.dx = a->dx,
                                                  .dw_part = a->part,
                                                  .dy = a->branch,
                                                  .x = x,
                                                  .w = net_weight(n, gain),
                                                  .rstd = rstd,
                                                  .dres = dres,
                                                  .N = N,
                                                  .C = C,
                                                  .P = partial_sums(N)}));
    add_columns(r, n, gain, a->part, N, C);
}

static void norm_again(struct work *r, const struct net *n, struct acts *a, int layer,
                       enum product reader, const void *x, float *rstd)
{
    const struct matrix *m = net_layer_matrix(n, layer, reader);
    float *top = product_x_made(n, a, layer, reader) ? student_f8_top(&a->f8, m, F8_X) : NULL;
    net_norm(r, n, a, layer, reader, top, x, rstd);
}

static void mlp_bwd(struct work *r, const struct net *n, struct acts *a, int layer,
                    const struct layer_acts *v)
{
    const struct layer_params *w = &n->p.layer[layer];
    const bool made = product_x_made(n, a, layer, PRODUCT_DOWN);
    /* The activation is computed with the gradient of gate and up, in the place of its own gradient; adapters read
     * it before that. */
    if (net_layer_matrix(n, layer, PRODUCT_DOWN)->adapters > 0)
        activation_fwd(r, n, a, v->gu);
    product_gradient(r, n, a, layer, PRODUCT_DOWN, a->dx);
    product_dx(r, n, a, layer, PRODUCT_DOWN, a->dact, a->dx, a->act);
    if (made)
        activation_bwd_quantize(r, n, a, layer, v->gu);
    else
        activation_bwd(r, n, a, v->gu);
    product_dw(r, n, a, layer, PRODUCT_DOWN, a->dx, a->dact);
    norm_again(r, n, a, layer, PRODUCT_GATE_UP, v->s2, v->rstd2);
    if (!made)
        product_gradient(r, n, a, layer, PRODUCT_GATE_UP, v->gu);
    product_dw(r, n, a, layer, PRODUCT_GATE_UP, v->gu, a->y);
    product_dx(r, n, a, layer, PRODUCT_GATE_UP, a->branch, v->gu, a->y);
    norm_bwd(r, n, a, w->ln2, v->s2, v->rstd2, a->dx);
}

/* Turn dqkv, the gradient of the rotated rows, into that of the product, and compute the gradients of gains and
 * biases. */
static void unrotate(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                     const struct layer_params *w, const struct layer_acts *v)
{
    const struct model_config *c = &n->c;
    int N = acts_rows(a), P = partial_sums(N), D = c->head_dim;
    if (c->qk_norm) {
        float *part_k = a->part + (size_t)P * (size_t)D;
        OP(r, nj_qknorm_rope_bwd(r->s, n->T,
                                 &(struct nj_qknorm_rope_bwd){.dqkv = a->dqkv,
                                                              .dwq_part = a->part,
                                                              .dwk_part = part_k,
                                                              .x = v->raw,
                                                              .rstd = v->rstd_qk,
                                                              .wq = net_weight(n, w->qnorm),
                                                              .wk = net_weight(n, w->knorm),
                                                              .inv_freq = n->inv_freq,
                                                              .pos = rows->pos,
                                                              .N = N,
                                                              .H = c->heads,
                                                              .K = c->kv_heads,
                                                              .D = D,
                                                              .P = P}));
        add_columns(r, n, w->qnorm, a->part, N, D);
        add_columns(r, n, w->knorm, part_k, N, D);
        return;
    }
    float *part = w->bqkv < 0 || !n->grad ? NULL : a->part;
    OP(r, nj_rope_bwd(r->s, n->T,
                      &(struct nj_rope_bwd){.dqkv = a->dqkv,
                                            .dbias_part = part,
                                            .inv_freq = n->inv_freq,
                                            .pos = rows->pos,
                                            .N = N,
                                            .H = c->heads,
                                            .K = c->kv_heads,
                                            .D = D,
                                            .P = P}));
    if (part)
        add_columns(r, n, w->bqkv, part, N, net_qkv(c));
}

static void attention_bwd(struct work *r, const struct net *n, struct acts *a,
                          const struct rows *rows, int layer, const struct layer_acts *v)
{
    const struct layer_params *w = &n->p.layer[layer];
    const struct model_config *c = &n->c;
    int B = a->B, S = a->S, H = c->heads, K = c->kv_heads, D = c->head_dim;
    float scale = 1.0f / sqrtf((float)D);
    product_gradient(r, n, a, layer, PRODUCT_O, a->dx);
    product_dw(r, n, a, layer, PRODUCT_O, a->dx, v->o);
    product_dx(r, n, a, layer, PRODUCT_O, a->dout, a->dx, v->o);
    OP(r, nj_attn_bwd_dq(r->s, n->T, D,
                         &(struct nj_attn_bwd_dq){.dqkv = a->dqkv,
                                                  .delta = a->delta,
                                                  .dout = a->dout,
                                                  .qkv = v->qkv,
                                                  .o = v->o,
                                                  .lse = v->lse,
                                                  .doc_start = rows->doc_start,
                                                  .B = B,
                                                  .S = S,
                                                  .H = H,
                                                  .K = K,
                                                  .scale = scale}));
    OP(r, nj_attn_bwd_dkv(r->s, n->T, D,
                          &(struct nj_attn_bwd_dkv){.dqkv = a->dqkv,
                                                    .dout = a->dout,
                                                    .qkv = v->qkv,
                                                    .lse = v->lse,
                                                    .delta = a->delta,
                                                    .doc_start = rows->doc_start,
                                                    .B = B,
                                                    .S = S,
                                                    .H = H,
                                                    .K = K,
                                                    .scale = scale}));
    unrotate(r, n, a, rows, w, v);
    norm_again(r, n, a, layer, PRODUCT_QKV, v->s1, v->rstd1);
    product_gradient(r, n, a, layer, PRODUCT_QKV, a->dqkv);
    product_dw(r, n, a, layer, PRODUCT_QKV, a->dqkv, a->y);
    product_dx(r, n, a, layer, PRODUCT_QKV, a->branch, a->dqkv, a->y);
    norm_bwd(r, n, a, w->ln1, v->s1, v->rstd1, a->dx);
}

void net_backward_norm(struct work *r, const struct net *n, struct acts *a)
{
    const struct layer_acts last = acts_layer(n, a, n->c.layers - 1);
    student_f8_begin_backward(r, n, a);
    norm_bwd(r, n, a, n->p.norm, last.s1_next, last.rstd1_next, NULL);
}

void net_backward_layers(struct work *r, const struct net *n, struct acts *a,
                         const struct rows *rows, int from, int to)
{
    for (int l = to - 1; l >= from; l--) {
        const struct layer_acts v = acts_layer(n, a, l);
        net_forward_again(r, n, a, rows, l);
        mlp_bwd(r, n, a, l, &v);
        attention_bwd(r, n, a, rows, l, &v);
    }
}

void net_backward_embedding(struct work *r, const struct net *n, struct acts *a,
                            const struct rows *rows)
{
    float *grad = n->embedding->grad;
    if (grad)
        OP(r, nj_embed_bwd(r->s, n->T,
                           &(struct nj_embed_bwd){.dw = grad,
                                                  .dy = a->dx,
                                                  .ids = rows->ids,
                                                  .order = rows->order,
                                                  .runs = rows->runs,
                                                  .N = acts_rows(a),
                                                  .C = n->c.hidden_size,
                                                  .V = n->c.vocab_size}));
}

void net_backward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows)
{
    net_backward_norm(r, n, a);
    net_backward_layers(r, n, a, rows, 0, n->c.layers);
    net_backward_embedding(r, n, a, rows);
}
