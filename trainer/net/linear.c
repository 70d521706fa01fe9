/* SPDX-License-Identifier: Apache-2.0
 *
 * linear.c: see linear.h.
 */
#include "net/linear.h"

#include "nojit_ops.h"

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
    struct nj_gemm g = forward_shape(l, l->T);
    g.c_dtype = l->wide ? NJ_F32 : g.c_dtype;
    gemm(r, &g, y, x, w);
}

static bool takes(const struct work *r, enum nj_f8_scales scales)
{
    return nj_context_device(r->ctx)->f8 == scales;
}

/* Return the scales of `rows` rows and `columns` columns of m in the form that the GEMM takes. */
static const void *scales_of(struct work *r, const struct fp8_matrix *m, int rows, int columns)
{
    if (!m->wanted)
        return m->scale;
    if (takes(r, NJ_F8_BLOCKS)) {
        OP(r, nj_e4m3_blocks(r->s, NJ_F32,
                             &(struct nj_e4m3_blocks){
                                 .words = m->wanted, .scale = m->scale, .R = rows, .C = columns}));
        return m->wanted;
    }
    OP(r, nj_e4m3_top(r->s, NJ_F32,
                      &(struct nj_e4m3_top){.top = m->wanted, .scale = m->scale, .R = rows}));
    OP(r, nj_e4m3_rescale(
              r->s, NJ_F32,
              &(struct nj_e4m3_rescale){
                  .q = m->q, .scale = m->scale, .top = m->wanted, .R = rows, .C = columns}));
    return m->wanted;
}

void linear_fp8(struct work *r, const struct linear *l, void *y, const struct fp8_matrix *x,
                const struct fp8_matrix *w)
{
    struct nj_gemm g = forward_shape(l, NJ_F8);
    if (r->prepare && l->refused && *l->refused)
        return; /* the GEMM was refused in an earlier layer */
    g.lda = l->ldx > 0 ? l->ldx : g.lda;
    g.one_scale = takes(r, NJ_F8_ONE) || (l->one_scale && !takes(r, NJ_F8_BLOCKS));
    g.a_e5m2 = l->x_e5m2;
    const void *x_scale = scales_of(r, x, l->rows, l->in);
    const void *w_scale = scales_of(r, w, l->out, l->in);
    const struct nj_gemm_operands operands = {
        .c = y, .a = x->q, .b = w->q, .a_scale = x_scale, .b_scale = w_scale};
    if (r->rc == 0)
        r->rc = r->prepare ? nj_gemm_prepare(r->ctx, &g) : nj_gemm_run_scaled(r->s, &g, &operands);
    if (r->rc == NJ_E_GEMM && r->prepare && l->refused) {
        *l->refused = true;
        r->rc = 0;
    }
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
