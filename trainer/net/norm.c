/* SPDX-License-Identifier: Apache-2.0
 *
 * norm.c: see norm.h.
 */
#include "net/norm.h"

#include "net/layer_gemm.h"
#include "net/student_fp8.h"
#include "nojit_ops.h"

void norm_fwd(struct work *r, const struct block_pass *p, float *top)
{
    const struct net *n = p->n;
    struct acts *a = p->a;
    const void *w = block_weight(p, block_matrices[p->b->kind].norm);
    const int N = acts_rows(a), C = n->c.hidden_size;
    if (!product_x_made(a, p->matrix)) {
        OP(r, nj_rmsnorm_fwd(r->s, n->T,
                             &(struct nj_rmsnorm_fwd){.y = a->y,
                                                      .rstd = p->v.rstd,
                                                      .x = p->v.x,
                                                      .w = w,
                                                      .N = N,
                                                      .C = C,
                                                      .eps = n->c.rms_eps}));
        return;
    }
    OP(r, nj_rmsnorm_quantize(r->s, n->T,
                              &(struct nj_rmsnorm_quantize){.q = a->x.q,
                                                            .scale = a->x.scale,
                                                            .top = top,
                                                            .rstd = p->v.rstd,
                                                            .x = p->v.x,
                                                            .w = w,
                                                            .N = N,
                                                            .C = C,
                                                            .eps = n->c.rms_eps}));
}

void norm_again(struct work *r, const struct block_pass *p)
{
    const bool made = product_x_made(p->a, p->matrix);
    norm_fwd(r, p, made ? student_fp8_top(&p->a->f8, p->matrix, FP8_X) : NULL);
}

void norm_add_fwd(struct work *r, const struct net *n, struct acts *a, const struct block_acts *v,
                  int64_t gain, bool made)
{
    const int N = acts_rows(a), C = n->c.hidden_size;
    const void *w = net_weight(n, gain);
    if (made)
        OP(r, nj_add_rmsnorm_quantize(r->s, n->T,
                                      &(struct nj_add_rmsnorm_quantize){.q = a->x.q,
                                                                        .scale = a->x.scale,
                                                                        .s = v->next,
                                                                        .rstd = v->next_rstd,
                                                                        .x = v->x,
                                                                        .b = a->branch,
                                                                        .w = w,
                                                                        .N = N,
                                                                        .C = C,
                                                                        .eps = n->c.rms_eps}));
    else
        OP(r, nj_add_rmsnorm_fwd(r->s, n->T,
                                 &(struct nj_add_rmsnorm_fwd){.y = a->y,
                                                              .s = v->next,
                                                              .rstd = v->next_rstd,
                                                              .x = v->x,
                                                              .b = a->branch,
                                                              .w = w,
                                                              .N = N,
                                                              .C = C,
                                                              .eps = n->c.rms_eps}));
}

void norm_bwd(struct work *r, const struct net *n, struct acts *a, int64_t gain, const void *x,
              const float *rstd, const void *dres)
{
    const int N = acts_rows(a), C = n->c.hidden_size;
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
    norm_add_columns(r, n, gain, a->part, N, C);
}

void norm_add_columns(struct work *r, const struct net *n, int64_t first, const float *part,
                      int rows, int columns)
{
    if (n->grad)
        OP(r, nj_colsum(r->s, NJ_F32,
                        &(struct nj_colsum){.dst = n->grad + first,
                                            .part = part,
                                            .P = partial_sums(rows),
                                            .C = columns}));
}
