/* SPDX-License-Identifier: Apache-2.0
 *
 * forward.c: one transformer, forward. The residual stream s1 -> s2 -> s1 of the next layer passes
 * through add_rmsnorm, which adds a branch and normalises in one kernel; a->y always holds the
 * normed rows that the next product reads.
 */
#include "model.h"

#include "nojit_ops.h"

#include <math.h>

static void attention(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                      const struct layer_acts *v)
{
    const struct model_config *c = &n->c;
    float scale = 1.0f / sqrtf((float)c->head_dim);
    if (a->mode == ACTS_DECODE)
        OP(r, nj_attn_decode(r->s, n->T, c->head_dim, v->o, v->cache, a->decode_pos + 1, c->heads,
                             c->kv_heads, scale));
    else
        OP(r, nj_attn_fwd(r->s, n->T, c->head_dim, v->o, v->lse, v->qkv, rows->doc_start, a->B,
                          a->S, c->heads, c->kv_heads, scale));
}

/* qkv = rotate(norm(y Wqkv^T + bias)) */
static void project_qkv(struct work *r, const struct net *n, struct acts *a,
                        const struct rows *rows, int layer, const struct layer_acts *v)
{
    const struct model_config *c = &n->c;
    const struct layer_params *w = &n->p.layer[layer];
    int N = acts_rows(a);
    product_fwd(r, n, a, layer, PRODUCT_QKV, c->qk_norm ? v->raw : v->qkv, a->y);
    if (c->qk_norm)
        OP(r, nj_qknorm_rope_fwd(r->s, n->T, v->qkv, v->rstd_qk, v->raw, net_weight(n, w->qnorm),
                                 net_weight(n, w->knorm), n->inv_freq, rows->pos, N, c->heads,
                                 c->kv_heads, c->head_dim, c->rms_eps));
    else
        OP(r, nj_rope_fwd(r->s, n->T, v->qkv, net_weight(n, w->bqkv), n->inv_freq, rows->pos, N,
                          c->heads, c->kv_heads, c->head_dim));
}

/* From the normed input in a->y to the normed rows that the MLP reads. */
static void attention_half(struct work *r, const struct net *n, struct acts *a,
                           const struct rows *rows, int layer, const struct layer_acts *v)
{
    project_qkv(r, n, a, rows, layer, v);
    attention(r, n, a, rows, v);
    product_fwd(r, n, a, layer, PRODUCT_O, a->branch, v->o);
    OP(r, nj_add_rmsnorm_fwd(r->s, n->T, a->y, v->s2, v->rstd2, v->s1, a->branch,
                             net_weight(n, n->p.layer[layer].ln2), acts_rows(a), n->c.hidden_size,
                             n->c.rms_eps));
}

static void norm(struct work *r, const struct net *n, struct acts *a, int64_t gain, const void *x,
                 float *rstd)
{
    OP(r, nj_rmsnorm_fwd(r->s, n->T, a->y, rstd, x, net_weight(n, gain), acts_rows(a),
                         n->c.hidden_size, n->c.rms_eps));
}

void forward_again(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                   int layer)
{
    const struct layer_params *w = &n->p.layer[layer];
    const struct layer_acts v = acts_layer(n, a, layer);
    if (n->recompute == RECOMPUTE_NONE)
        return;
    if (n->recompute == RECOMPUTE_BLOCK) {
        norm(r, n, a, w->ln1, v.s1, v.rstd1);
        attention_half(r, n, a, rows, layer, &v);
    } else {
        norm(r, n, a, w->ln2, v.s2, v.rstd2);
    }
    product_fwd(r, n, a, layer, PRODUCT_GATE_UP, v.gu, a->y);
}

static void forward_layer(struct work *r, const struct net *n, struct acts *a,
                          const struct rows *rows, int layer)
{
    const struct model_config *c = &n->c;
    const struct layer_acts v = acts_layer(n, a, layer);
    int N = acts_rows(a), C = c->hidden_size;
    int64_t next_norm = layer + 1 < c->layers ? n->p.layer[layer + 1].ln1 : n->p.norm;

    attention_half(r, n, a, rows, layer, &v);
    product_fwd(r, n, a, layer, PRODUCT_GATE_UP, v.gu, a->y);
    OP(r, nj_swiglu_fwd(r->s, n->T, a->act, v.gu, N, c->intermediate_size));
    product_fwd(r, n, a, layer, PRODUCT_DOWN, a->branch, a->act);
    OP(r, nj_add_rmsnorm_fwd(r->s, n->T, a->y, v.s1_next, v.rstd1_next, v.s2, a->branch,
                             net_weight(n, next_norm), N, C, c->rms_eps));
}

void forward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows)
{
    const struct model_config *c = &n->c;
    int N = acts_rows(a);
    OP(r, nj_row_gather(r->s, n->T, a->s1, net_weight(n, n->p.embed), rows->ids, N, c->vocab_size,
                        c->hidden_size));
    norm(r, n, a, n->p.layer[0].ln1, a->s1, a->rstd1);
    for (int l = 0; l < c->layers; l++)
        forward_layer(r, n, a, rows, l);
}
