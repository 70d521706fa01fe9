/* SPDX-License-Identifier: Apache-2.0
 *
 * step_product.c: see step_product.h.
 */
#include "net/step_product.h"

#include "net/block_matrix.h"
#include "nojit_ops.h"

/* Return the gain of the norm before a block. */
static const void *gain(const struct block_pass *p)
{
    return block_weight(p, block_matrices[p->b->kind].norm);
}

void step_normed_product(struct work *r, const struct block_pass *p, int which, void *y,
                         const void *bias)
{
    const struct net *n = p->n;
    const struct matrix *m = &p->matrix[which];
    OP(r, nj_gemv_norm(r->s, n->T, acts_rows(p->a),
                       &(struct nj_gemv_norm){.y = y,
                                              .x = p->v.x,
                                              .g = gain(p),
                                              .w = m->data,
                                              .b = bias,
                                              .N = m->rows,
                                              .C = m->cols,
                                              .ld = m->rows,
                                              .eps = n->c.rms_eps,
                                              .offset = p->b->gain_offset}));
}

void step_normed_swiglu(struct work *r, const struct block_pass *p, int which, void *y)
{
    const struct net *n = p->n;
    const struct matrix *m = &p->matrix[which];
    OP(r, nj_gemv_norm_swiglu(r->s, n->T, acts_rows(p->a),
                              &(struct nj_gemv_norm_swiglu){.a = y,
                                                            .x = p->v.x,
                                                            .g = gain(p),
                                                            .w = m->data,
                                                            .I = m->rows / 2,
                                                            .C = m->cols,
                                                            .eps = n->c.rms_eps,
                                                            .offset = p->b->gain_offset}));
}

void step_add_product(struct work *r, const struct block_pass *p, int which, const void *x)
{
    const struct matrix *m = &p->matrix[which];
    OP(r, nj_gemv_add(r->s, p->n->T, acts_rows(p->a),
                      &(struct nj_gemv_add){.s = p->v.x,
                                            .x = x,
                                            .w = m->data,
                                            .N = m->rows,
                                            .K = m->cols,
                                            .scale = matrix_scale(m)}));
}
