/* SPDX-License-Identifier: Apache-2.0
 *
 * experts_bwd.c: the backward pass of a mixture of experts. The output of an expert counts by its weight w: from the
 * gradient dy of a row come d = dy W_down, w d, the gradient of the activation, and <d, act>, that of w; so outputs
 * need not be kept. The choice of experts is constant.
 */
#include "base/checked.h"
#include "base/integers.h"
#include "net/experts.h"
#include "net/layer_gemm.h"
#include "net/norm.h"
#include "nojit_ops.h"

/* ---- memory ---- */

/* GEMMs read rows that begin at multiples of 16 bytes. */
enum { LOGITS_MULTIPLE = 8 };

void experts_carve_backward(const struct net *n, size_t rows, struct carve *m, struct acts *a)
{
    struct expert_acts *e = &a->experts;
    const size_t experts = experts_most(n), pairs = experts_most_used(n);
    if (experts == 0)
        return;
    e->dlogits =
        carve_take(m, size_product(rows, size_up(experts, LOGITS_MULTIPLE), dtype_bytes(n->T)));
    e->dweight = carve_take(m, size_product(rows, pairs, sizeof *e->dweight));
}

/* ---- backward ---- */

/* A product with a matrix for each expert, or with two of them side by side: y = x W^T. */
struct product {
    const struct matrix *m;
    int parts, rows;    /* 1 or 2, and the rows of the matrix of one expert */
    const void *dy, *x; /* rows */
    const int32_t *dy_row,
        *row; /* row of dy, or of x, at each place; NULL: they are in that order */
};

static int pairs(const struct block_pass *p)
{
    return acts_rows(p->a) * p->b->experts_used;
}

static int rows_of(const struct block_pass *p, const int32_t *index)
{
    return index ? acts_rows(p->a) : pairs(p);
}

/* Compute dx = dy W at each place. */
static void gradient_of_rows(struct work *r, const struct block_pass *p, const struct product *of,
                             void *dx)
{
    const enum nj_dtype T = p->n->T;
    const int G = nj_context_device(r->ctx)->multiprocessors, R = rows_of(p, of->dy_row);
    const bool whole = of->rows % 64 == 0;
    if (whole && nj_expert_gemm_dx_tma_available(r->ctx, T))
        OP(r, nj_expert_gemm_dx_tma(r->s, T,
                                    &(struct nj_expert_gemm_dx_tma){.dx = dx,
                                                                    .dy = of->dy,
                                                                    .row = of->dy_row,
                                                                    .w = of->m->data,
                                                                    .first = p->a->experts.first,
                                                                    .P = pairs(p),
                                                                    .R = R,
                                                                    .E = p->b->experts,
                                                                    .M = of->rows,
                                                                    .C = of->m->cols,
                                                                    .Q = of->parts,
                                                                    .G = G}));
    else
        OP(r, nj_expert_gemm_dx(r->s, T,
                                &(struct nj_expert_gemm_dx){.dx = dx,
                                                            .dy = of->dy,
                                                            .row = of->dy_row,
                                                            .w = of->m->data,
                                                            .first = p->a->experts.first,
                                                            .P = pairs(p),
                                                            .R = R,
                                                            .E = p->b->experts,
                                                            .M = of->rows,
                                                            .C = of->m->cols,
                                                            .Q = of->parts,
                                                            .G = G}));
}

/* Compute the gradients of the matrices of all experts. */
static void gradient_of_matrices(struct work *r, const struct block_pass *p,
                                 const struct product *of)
{
    const enum nj_dtype T = p->n->T;
    const int G = nj_context_device(r->ctx)->multiprocessors;
    const int Y = rows_of(p, of->dy_row), X = rows_of(p, of->row);
    if (nj_expert_gemm_dw_wgmma_available(r->ctx, T))
        OP(r,
           nj_expert_gemm_dw_wgmma(r->s, T,
                                   &(struct nj_expert_gemm_dw_wgmma){.dw = of->m->grad,
                                                                     .dy = of->dy,
                                                                     .dy_row = of->dy_row,
                                                                     .x = of->x,
                                                                     .x_row = of->row,
                                                                     .first = p->a->experts.first,
                                                                     .P = pairs(p),
                                                                     .Y = Y,
                                                                     .X = X,
                                                                     .E = p->b->experts,
                                                                     .M = of->rows,
                                                                     .C = of->m->cols,
                                                                     .Q = of->parts,
                                                                     .G = G,
                                                                     .add = r->add}));
    else
        OP(r, nj_expert_gemm_dw(r->s, T,
                                &(struct nj_expert_gemm_dw){.dw = of->m->grad,
                                                            .dy = of->dy,
                                                            .dy_row = of->dy_row,
                                                            .x = of->x,
                                                            .x_row = of->row,
                                                            .first = p->a->experts.first,
                                                            .P = pairs(p),
                                                            .Y = Y,
                                                            .X = X,
                                                            .E = p->b->experts,
                                                            .M = of->rows,
                                                            .C = of->m->cols,
                                                            .Q = of->parts,
                                                            .G = G,
                                                            .add = r->add}));
}

/* Compute the gradients of gate and up in their place, of the weights, and the weighted activation in the place of its
 * gradient. */
static void gradient_of_activation(struct work *r, const struct block_pass *p)
{
    const struct block *b = p->b;
    const struct expert_acts *e = &p->a->experts;
    OP(r, nj_expert_glu_bwd(r->s, p->n->T,
                            &(struct nj_expert_glu_bwd){.dgu = e->gate_up,
                                                        .act = e->act,
                                                        .dweight = e->dweight,
                                                        .d = e->act,
                                                        .gu = e->gate_up,
                                                        .weight = e->weight,
                                                        .place = e->place,
                                                        .chosen = e->chosen,
                                                        .dy = NULL,
                                                        .bias = NULL,
                                                        .N = acts_rows(p->a),
                                                        .E = b->experts,
                                                        .J = b->experts_used,
                                                        .I = b->ffn_size,
                                                        .C = p->n->c.hidden_size,
                                                        .limit = b->glu_limit,
                                                        .alpha = b->glu_alpha}));
}

/* Compute the gradients of the router's matrix, and of its rows in a->branch. */
static void gradient_of_router(struct work *r, const struct block_pass *p)
{
    const struct block *b = p->b;
    const struct expert_acts *e = &p->a->experts;
    const struct matrix *router = &p->matrix[EXPERTS_ROUTER];
    const struct linear l = {.T = p->n->T,
                             .rows = acts_rows(p->a),
                             .out = b->experts,
                             .in = router->cols,
                             .ldy = int_round_up(b->experts, LOGITS_MULTIPLE)};
    OP(r, nj_expert_route_bwd(
              r->s, p->n->T,
              &(struct nj_expert_route_bwd){.dlogits = e->dlogits,
                                            .dweight = e->dweight,
                                            .logits = e->logits,
                                            .chosen = e->chosen,
                                            .dprob = e->dprob,
                                            .keep = p->rows->keep,
                                            .N = l.rows,
                                            .E = b->experts,
                                            .J = b->experts_used,
                                            .ld = (int)l.ldy,
                                            .rule = (int)b->router,
                                            .renormalize = b->renormalized,
                                            .scale = matrix_scale(&p->matrix[EXPERTS_DOWN])}));
    linear_dw(r, &l, router->grad, e->dlogits, block_rows(p), r->add);
    linear_dx(r, &l, p->a->branch, e->dlogits, router->data);
}

/* Add the gradients of each row's places to a->branch. */
static void add_places(struct work *r, const struct block_pass *p)
{
    const struct expert_acts *e = &p->a->experts;
    OP(r, nj_expert_combine(r->s, p->n->T,
                            &(struct nj_expert_combine){.y = p->a->branch,
                                                        .d = e->output,
                                                        .weight = NULL,
                                                        .place = e->place,
                                                        .addend = p->a->branch,
                                                        .N = acts_rows(p->a),
                                                        .J = p->b->experts_used,
                                                        .C = p->n->c.hidden_size,
                                                        .P = pairs(p)}));
}

void experts_backward(struct work *r, const struct block_pass *p)
{
    const struct expert_acts *e = &p->a->experts;
    experts_use_kept(p);
    const struct product down = {.m = &p->matrix[EXPERTS_DOWN],
                                 .parts = 1,
                                 .rows = p->n->c.hidden_size,
                                 .dy = block_gradient(p),
                                 .dy_row = e->row,
                                 .x = e->act};
    const struct product gate_up = {.m = &p->matrix[EXPERTS_GATE_UP],
                                    .parts = 2,
                                    .rows = p->b->ffn_size,
                                    .dy = e->gate_up,
                                    .x = block_rows(p),
                                    .row = e->row};
    /* 1. down, and the activation, which is computed with the gradient of gate and up */
    gradient_of_rows(r, p, &down, e->act);
    gradient_of_activation(r, p);
    gradient_of_matrices(r, p, &down);
    /* 2. gate and up */
    norm_again(r, p);
    gradient_of_matrices(r, p, &gate_up);
    gradient_of_rows(r, p, &gate_up, e->output);
    /* 3. the router, and the sum over the experts of a row */
    gradient_of_router(r, p);
    add_places(r, p);
}
