/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: products with weights: any, and the four of a layer, whose adapters and gradients are
 * decided here and nowhere else.
 */
#include "engine/lora.h"
#include "engine/model.h"

static void gemm(struct work *r, const struct nj_gemm *g, void *c, const void *a, const void *b)
{
    if (r->rc != 0)
        return;
    r->rc = r->prepare ? nj_gemm_prepare(r->ctx, g) : nj_gemm_run(r->s, g, c, a, b);
}

static struct nj_gemm forward_shape(const struct linear *l, enum nj_dtype operands)
{
    return (struct nj_gemm){
        .kind = NJ_GEMM_NT,
        .ab_dtype = operands,
        .c_dtype = l->T,
        .M = l->rows,
        .N = l->out,
        .K = l->in,
        .lda = l->in,
        .ldb = l->in,
        .ldc = l->ldy,
        .beta = l->add ? 1.0f : 0.0f,
        .scale = l->scale,
    };
}

void linear_fwd(struct work *r, const struct linear *l, void *y, const void *x, const void *w)
{
    const struct nj_gemm g = forward_shape(l, l->T);
    gemm(r, &g, y, x, w);
}

void linear_f8(struct work *r, const struct linear *l, void *y, const struct f8_matrix *x,
               const struct f8_matrix *w)
{
    const struct nj_gemm g = forward_shape(l, NJ_F8);
    if (r->rc == 0)
        r->rc = r->prepare ? nj_gemm_prepare(r->ctx, &g)
                           : nj_gemm_run_scaled(r->s, &g, y, x->q, x->scale, w->q, w->scale);
}

void linear_dx(struct work *r, const struct linear *l, void *dx, const void *dy, const void *w)
{
    const struct nj_gemm g = {
        .kind = NJ_GEMM_NN,
        .ab_dtype = l->T,
        .c_dtype = l->T,
        .M = l->rows,
        .N = l->in,
        .K = l->out,
        .lda = l->ldy,
        .ldb = l->in,
        .ldc = l->in,
        .beta = l->add ? 1.0f : 0.0f,
        .scale = l->scale,
    };
    gemm(r, &g, dx, dy, w);
}

void linear_dw(struct work *r, const struct linear *l, float *dw, const void *dy, const void *x,
               bool add)
{
    const struct nj_gemm g = {
        .kind = NJ_GEMM_TN,
        .ab_dtype = l->T,
        .c_dtype = NJ_F32,
        .M = l->out,
        .N = l->in,
        .K = l->rows,
        .lda = l->ldy,
        .ldb = l->in,
        .ldc = l->in,
        .beta = add ? 1.0f : 0.0f,
        .scale = l->scale,
    };
    gemm(r, &g, dw, dy, x);
}

/* ---- the products of a layer ---- */

struct linear product_shape(const struct net *n, int rows, enum product which)
{
    const struct model_config *c = &n->c;
    int C = c->hidden_size, I = c->intermediate_size, HD = c->heads * c->head_dim;
    const struct {
        int out, in;
    } size[PRODUCTS] = {
        [PRODUCT_QKV] = {net_qkv(c), C},
        [PRODUCT_O] = {C, HD},
        [PRODUCT_GATE_UP] = {2 * I, C},
        [PRODUCT_DOWN] = {C, I},
    };
    return (struct linear){n->T, rows, size[which].out, size[which].in, .ldy = size[which].out};
}

int product_widest_input(const struct model_config *c)
{
    int widest = c->heads * c->head_dim;
    widest = widest > c->hidden_size ? widest : c->hidden_size;
    return widest > c->intermediate_size ? widest : c->intermediate_size;
}

void product_fwd(struct work *r, const struct net *n, const struct acts *a, int layer,
                 enum product which, void *y, const void *x)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    if (n->f8) {
        linear_f8(r, &l, y, &a->x, &n->f8[layer * PRODUCTS + (int)which]);
        return;
    }
    linear_fwd(r, &l, y, x, net_weight(n, params_product(&n->p, layer, which)));
    if (n->lora)
        lora_fwd(r, n, a, layer, which, &l, y, x);
}

void product_dw(struct work *r, const struct net *n, const struct acts *a, int layer,
                enum product which, const void *dy, const void *x)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    if (n->grad)
        linear_dw(r, &l, n->grad + params_product(&n->p, layer, which), dy, x, r->add);
}

void product_dx(struct work *r, const struct net *n, const struct acts *a, int layer,
                enum product which, void *dx, const void *dy, const void *x)
{
    const struct linear l = product_shape(n, acts_rows(a), which);
    linear_dx(r, &l, dx, dy, net_weight(n, params_product(&n->p, layer, which)));
    if (n->lora)
        lora_bwd(r, n, a, layer, which, &l, dx, dy, x);
}
