/* SPDX-License-Identifier: Apache-2.0
 *
 * activation.c: gated activations. SiLU has kernels of its own; other activations are part of the key of a kernel.
 */
#include "net/activation.h"

#include "base/families.h"
#include "net/student_fp8.h"
#include "nojit_ops.h"

static enum nj_activation activation_of(const struct block *b)
{
    return hidden_acts[b->act].kernels;
}

bool activation_is_silu(const struct block *b)
{
    return activation_of(b) == NJ_SILU;
}

bool activation_fused(const struct work *r, const struct block_pass *p)
{
    return nj_gemm_glu_available(r->ctx, p->n->T, (int)activation_of(p->b));
}

void activation_gemm(struct work *r, const struct block_pass *p, void *gu, const void *x,
                     const void *w)
{
    OP(r, nj_gemm_glu(r->s, p->n->T, (int)activation_of(p->b),
                      &(struct nj_gemm_glu){.act = p->a->act,
                                            .gu = gu,
                                            .x = x,
                                            .w = w,
                                            .N = acts_rows(p->a),
                                            .I = p->b->ffn_size,
                                            .C = p->n->c.hidden_size,
                                            .P = nj_context_device(r->ctx)->multiprocessors}));
}

void activation_rows(struct work *r, const struct block *b, enum nj_dtype T, void *y,
                     const void *gu, int rows)
{
    const enum nj_activation act = activation_of(b);
    const int I = b->ffn_size;
    if (act == NJ_SILU)
        OP(r, nj_swiglu_fwd(r->s, T, &(struct nj_swiglu_fwd){.y = y, .gu = gu, .N = rows, .I = I}));
    else
        OP(r, nj_glu_fwd(r->s, T, (int)act,
                         &(struct nj_glu_fwd){.y = y, .gu = gu, .N = rows, .I = I}));
}

void activation_fwd(struct work *r, const struct block_pass *p, const void *gu)
{
    activation_rows(r, p->b, p->n->T, p->a->act, gu, acts_rows(p->a));
}

void activation_quantize(struct work *r, const struct block_pass *p, const void *gu)
{
    const enum nj_activation act = activation_of(p->b);
    const struct acts *a = p->a;
    const int N = acts_rows(a), I = p->b->ffn_size;
    if (act == NJ_SILU)
        OP(r, nj_swiglu_quantize(r->s, p->n->T,
                                 &(struct nj_swiglu_quantize){
                                     .q = a->x.q, .scale = a->x.scale, .gu = gu, .N = N, .I = I}));
    else
        OP(r, nj_glu_quantize(r->s, p->n->T, (int)act,
                              &(struct nj_glu_quantize){
                                  .q = a->x.q, .scale = a->x.scale, .gu = gu, .N = N, .I = I}));
}

void activation_bwd(struct work *r, const struct block_pass *p, void *gu)
{
    const enum nj_activation act = activation_of(p->b);
    const struct acts *a = p->a;
    const int N = acts_rows(a), I = p->b->ffn_size;
    if (act == NJ_SILU)
        OP(r, nj_swiglu_bwd(r->s, p->n->T,
                            &(struct nj_swiglu_bwd){
                                .dgu = gu, .y = a->dact, .dy = a->dact, .gu = gu, .N = N, .I = I}));
    else
        OP(r, nj_glu_bwd(r->s, p->n->T, (int)act,
                         &(struct nj_glu_bwd){
                             .dgu = gu, .y = a->dact, .dy = a->dact, .gu = gu, .N = N, .I = I}));
}

void activation_bwd_quantize(struct work *r, const struct block_pass *p, const void *gu)
{
    const struct acts *a = p->a;
    float *dtop = student_fp8_top(&a->f8, &p->matrix[GLU_GATE_UP], FP8_DY);
    float *top = student_fp8_top(&a->f8, &p->matrix[GLU_DOWN], FP8_X);
    OP(r, nj_glu_bwd_quantize(r->s, p->n->T, (int)activation_of(p->b),
                              &(struct nj_glu_bwd_quantize){.dq = a->f8.dgu.q,
                                                            .dscale = a->f8.dgu.scale,
                                                            .q = a->x.q,
                                                            .scale = a->x.scale,
                                                            .dtop = dtop,
                                                            .top = top,
                                                            .dy = a->dact,
                                                            .gu = gu,
                                                            .N = acts_rows(a),
                                                            .I = p->b->ffn_size}));
}
