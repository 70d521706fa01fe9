/* SPDX-License-Identifier: Apache-2.0
 *
 * experts.c: a mixture of experts as a block: gated MLPs, of which a router chooses some for each row. Pairs of a row
 * and an expert are sorted by expert, so that each expert has a stretch of places; a product with the weights of all
 * experts is one kernel, which reads on the device how many rows an expert has. experts_bwd.c has the backward pass.
 */
#include "net/experts.h"
#include "base/check.h"
#include "base/checked.h"
#include "net/activation.h"
#include "net/layer_gemm.h"
#include "net/norm.h"
#include "net/quant.h"
#include "net/shared_expert.h"
#include "nojit_ops.h"

#include <stdio.h>

/* ---- memory ---- */

static int64_t wide_of(const struct block *b)
{
    const int64_t wide = (int64_t)b->experts_used * b->ffn_size;
    return wide > b->shared_size ? wide : b->shared_size;
}

static void *take(struct carve *m, size_t rows, size_t each, size_t bytes)
{
    return carve_take(m, size_product(rows, each, bytes));
}

static size_t array_bytes(const struct net *n, const struct block *b, size_t rows,
                          enum acts_mode mode, int array)
{
    struct expert_acts routes;
    struct carve counted = {0};
    if (mode != ACTS_TRAIN)
        return 0;
    if (array == EXPERTS_KEPT_GATE_UP)
        return size_product(rows, size_mul(2, (size_t)wide_of(b)), dtype_bytes(n->T));
    experts_carve_routes(rows, (size_t)b->experts_used, (size_t)b->experts, &counted, &routes);
    return counted.used;
}

static void carve(const struct net *n, size_t rows, struct carve *m, struct acts *a)
{
    struct expert_acts *e = &a->experts;
    const size_t pairs = experts_most_used(n), experts = experts_most(n);
    const size_t wide = net_most(n, wide_of);
    const size_t T = dtype_bytes(n->T), C = (size_t)n->c.hidden_size;
    if (experts == 0)
        return;
    if (a->mode != ACTS_TRAIN) {
        experts_carve_routes(rows, pairs, experts, m, e);
        e->gate_up = take(m, rows, size_mul(2, wide), T);
    }
    e->router_bias = take(m, experts, 1, sizeof *e->router_bias);
    e->act = take(m, rows, wide, T);
    e->output = take(m, rows, size_mul(pairs, C), T);
}

/* ---- forward ---- */

/* Experts whose matrices are T at the same time. */
struct group {
    int first, count;
};

/* A product with a matrix for each expert of a group. */
struct product_of_experts {
    struct group experts;
    char *y;
    int ld; /* elements from one row of y to the next */
    const char *x;
    const int32_t *row; /* row of x at each place; NULL: x has them in that order */
    const char *w;
    const char *bias;  /* that of the first expert of all; NULL: none */
    int rows, columns; /* sizes of the matrix of one expert */
};

/* Add the bias of the router to its logits. A bias is T, and logits are float32: the sum over its only row makes it
 * float32. */
static void add_router_bias(struct work *r, const struct block_pass *p)
{
    const struct expert_acts *e = &p->a->experts;
    const int E = p->b->experts;
    OP(r, nj_bias_bwd(r->s, p->n->T,
                      &(struct nj_bias_bwd){.part = e->router_bias,
                                            .dy = block_weight(p, ROLE_ROUTER_BIAS),
                                            .N = 1,
                                            .C = E,
                                            .P = 1}));
    OP(r, nj_bias_add(r->s, NJ_F32,
                      &(struct nj_bias_add){
                          .y = e->logits, .b = e->router_bias, .N = acts_rows(p->a), .C = E}));
}

/* Least number that is added to a sum of weights, which may be 0. */
#define LEAST 1e-20f

/* Choose the experts of each row of x, from logits in float32. What a block adds to the stream may have a factor, which
 * the weights of the experts take. */
static void route(struct work *r, const struct block_pass *p, const void *x)
{
    const struct block *b = p->b;
    const struct expert_acts *e = &p->a->experts;
    const struct matrix *router = &p->matrix[EXPERTS_ROUTER];
    const float scale =
        matrix_scale(&p->matrix[EXPERTS_DOWN]) * (b->route_scale > 0 ? b->route_scale : 1);
    const int N = acts_rows(p->a);
    const struct linear l = {.T = p->n->T,
                             .rows = N,
                             .out = b->experts,
                             .in = router->cols,
                             .ldy = b->experts,
                             .wide = true};
    linear_fwd(r, &l, e->logits, x, product_weight(r, p->a, router));
    if (block_has(b, FEATURE_MLP_BIAS))
        add_router_bias(r, p);
    OP(r,
       nj_expert_route(r->s, NJ_F32,
                       &(struct nj_expert_route){.chosen = e->chosen,
                                                 .weight = e->weight,
                                                 .logits = e->logits,
                                                 .bias = block_weight(p, ROLE_CORRECTION),
                                                 .N = N,
                                                 .E = b->experts,
                                                 .J = b->experts_used,
                                                 .G = b->groups > 0 ? b->groups : 1,
                                                 .groups_used = b->groups > 0 ? b->groups_used : 1,
                                                 .rule = (int)b->router,
                                                 .renormalize = b->renormalized,
                                                 .scale = scale,
                                                 .eps = b->route_eps > 0 ? b->route_eps : LEAST}));
}

/* Sort the pairs of a row and an expert by expert. */
static void sort(struct work *r, const struct block_pass *p)
{
    const struct block *b = p->b;
    const struct expert_acts *e = &p->a->experts;
    OP(r, nj_expert_sort(r->s, NJ_F32,
                         &(struct nj_expert_sort){.first = e->first,
                                                  .row = e->row,
                                                  .place = e->place,
                                                  .chosen = e->chosen,
                                                  .N = acts_rows(p->a),
                                                  .E = b->experts,
                                                  .J = b->experts_used}));
}

/* Return the group of experts after one; {0} comes before the first. */
static struct group next_group(const struct matrix *m, struct group last)
{
    const int first = last.first + last.count, left = m->experts - first;
    return (struct group){first, left < m->experts_at_once ? left : m->experts_at_once};
}

/* Compute y = x W^T at each place of the group, with the matrix W of its expert. */
static void multiply(struct work *r, const struct block_pass *p,
                     const struct product_of_experts *of)
{
    const enum nj_dtype T = p->n->T;
    const int N = acts_rows(p->a), P = N * p->b->experts_used;
    const int G = nj_context_device(r->ctx)->multiprocessors;
    const int32_t *first = p->a->experts.first + of->experts.first;
    const size_t before = (size_t)of->experts.first * (size_t)of->rows * dtype_bytes(T);
    const void *bias = of->bias ? of->bias + before : NULL;
    if (nj_expert_gemm_tma_available(r->ctx, T))
        OP(r, nj_expert_gemm_tma(r->s, T,
                                 &(struct nj_expert_gemm_tma){.y = of->y,
                                                              .x = of->x,
                                                              .row = of->row,
                                                              .w = of->w,
                                                              .bias = bias,
                                                              .first = first,
                                                              .P = P,
                                                              .R = of->row ? N : P,
                                                              .E = of->experts.count,
                                                              .M = of->rows,
                                                              .C = of->columns,
                                                              .ld = of->ld,
                                                              .G = G}));
    else
        OP(r, nj_expert_gemm(r->s, T,
                             &(struct nj_expert_gemm){.y = of->y,
                                                      .x = of->x,
                                                      .row = of->row,
                                                      .w = of->w,
                                                      .bias = bias,
                                                      .first = first,
                                                      .P = P,
                                                      .R = of->row ? N : P,
                                                      .E = of->experts.count,
                                                      .M = of->rows,
                                                      .C = of->columns,
                                                      .ld = of->ld,
                                                      .G = G}));
}

/* Return whether one kernel computes gate, up and their activation. */
static bool is_plain(const struct block *b)
{
    return activation_is_silu(b) && b->glu_limit == 0 && !block_has(b, FEATURE_MLP_BIAS);
}

/* Compute the activations of a group's places by one kernel with their products. */
static void gate_up_fused(struct work *r, const struct block_pass *p, struct group g, const void *w)
{
    const struct block *b = p->b;
    const struct expert_acts *e = &p->a->experts;
    const int N = acts_rows(p->a);
    const bool train = p->a->mode == ACTS_TRAIN;
    OP(r, nj_expert_gemm_swiglu(
              r->s, p->n->T,
              &(struct nj_expert_gemm_swiglu){.act = e->act,
                                              .gu = train ? e->gate_up : NULL,
                                              .x = block_rows(p),
                                              .row = e->row,
                                              .w = w,
                                              .first = e->first + g.first,
                                              .P = N * b->experts_used,
                                              .R = N,
                                              .E = g.count,
                                              .I = b->ffn_size,
                                              .C = p->n->c.hidden_size,
                                              .G = nj_context_device(r->ctx)->multiprocessors}));
}

/* Compute gates and ups of a group's places. */
static void gate_up_apart(struct work *r, const struct block_pass *p, struct group g, const char *w)
{
    const size_t T = dtype_bytes(p->n->T);
    const int I = p->b->ffn_size, C = p->n->c.hidden_size;
    struct product_of_experts of = {.experts = g,
                                    .y = p->a->experts.gate_up,
                                    .ld = 2 * I,
                                    .x = block_rows(p),
                                    .row = p->a->experts.row,
                                    .w = w,
                                    .bias = block_weight(p, ROLE_EXPERT_GATE_BIAS),
                                    .rows = I,
                                    .columns = C};
    multiply(r, p, &of);
    of.y += (size_t)I * T;
    of.w += (size_t)g.count * (size_t)I * (size_t)C * T;
    of.bias = block_weight(p, ROLE_EXPERT_UP_BIAS);
    multiply(r, p, &of);
}

/* Compute the activations of gates and ups of all places. */
static void activate(struct work *r, const struct block_pass *p)
{
    const struct block *b = p->b;
    const struct expert_acts *e = &p->a->experts;
    const int P = acts_rows(p->a) * b->experts_used;
    if (b->glu_limit == 0)
        activation_rows(r, b, p->n->T, e->act, e->gate_up, P);
    else
        OP(r, nj_expert_glu_clamped(r->s, p->n->T,
                                    &(struct nj_expert_glu_clamped){.act = e->act,
                                                                    .gu = e->gate_up,
                                                                    .P = P,
                                                                    .I = b->ffn_size,
                                                                    .limit = b->glu_limit,
                                                                    .alpha = b->glu_alpha}));
}

/* Compute the activations of all places. */
static void gate_up(struct work *r, const struct block_pass *p)
{
    const struct matrix *m = &p->matrix[EXPERTS_GATE_UP];
    const bool fused = is_plain(p->b) && nj_expert_gemm_swiglu_available(r->ctx, p->n->T);
    for (struct group g = next_group(m, (struct group){0}); g.count > 0; g = next_group(m, g)) {
        const void *w = product_experts(r, m, 2, g.first, g.count);
        if (fused)
            gate_up_fused(r, p, g, w);
        else
            gate_up_apart(r, p, g, w);
    }
    if (!fused)
        activate(r, p);
}

/* Compute the output, to which the shared expert's is added, unless it is NULL. */
static void down(struct work *r, const struct block_pass *p, const void *shared)
{
    const struct expert_acts *e = &p->a->experts;
    const struct matrix *m = &p->matrix[EXPERTS_DOWN];
    const int C = p->n->c.hidden_size;
    for (struct group g = next_group(m, (struct group){0}); g.count > 0; g = next_group(m, g)) {
        const struct product_of_experts of = {.experts = g,
                                              .y = e->output,
                                              .ld = C,
                                              .x = e->act,
                                              .w = product_experts(r, m, 1, g.first, g.count),
                                              .bias = block_weight(p, ROLE_EXPERT_DOWN_BIAS),
                                              .rows = C,
                                              .columns = m->cols};
        multiply(r, p, &of);
    }
    OP(r,
       nj_expert_combine(r->s, p->n->T,
                         &(struct nj_expert_combine){.y = p->v.output,
                                                     .d = e->output,
                                                     .weight = e->weight,
                                                     .place = e->place,
                                                     .addend = shared,
                                                     .N = acts_rows(p->a),
                                                     .J = p->b->experts_used,
                                                     .C = C,
                                                     .P = acts_rows(p->a) * p->b->experts_used}));
}

/* ---- a few rows, each of which reads the matrices of its own experts ---- */

/* Matrices of the experts of a layer that lie one after another: blocks of one type; NULL: elements of T. */
struct read_in_place {
    enum nj_tensor_type type;
    const int32_t *blocks;
};
struct few_rows {
    struct read_in_place gates, ups, downs;
};

bool experts_read_blocks(const nj_context *ctx, enum nj_tensor_type type)
{
    static const char *const ops[] = {"expert_gemv_swiglu_blocks", "expert_gemv_down_blocks"};
    bool all = true;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s.lp.type%d", ops[i], (int)type);
        all = all && nj_kernel_available(ctx, nj_kernel_find(key));
    }
    return all;
}

/* Find how a kernel can read these rows: as blocks, or as T. Return false if neither is possible. */
static bool can_read(const struct work *r, const struct matrix *m, int first, int rows,
                     struct read_in_place *out)
{
    out->type = NJ_TYPE_F32;
    out->blocks = quant_blocks(m, first, rows, &out->type);
    if (!out->blocks)
        return m->format == &matrix_plain;
    return m->T == NJ_LP && experts_read_blocks(r->ctx, out->type);
}

/* Return whether kernels for few rows can compute a layer. */
static bool can_read_layer(const struct work *r, const struct block_pass *p, struct few_rows *out)
{
    const struct matrix *m = &p->matrix[EXPERTS_GATE_UP], *d = &p->matrix[EXPERTS_DOWN];
    const int half = m->rows / 2;
    return activation_is_silu(p->b) && can_read(r, m, 0, half, &out->gates) &&
           can_read(r, m, half, half, &out->ups) && out->gates.type == out->ups.type &&
           can_read(r, d, 0, d->rows, &out->downs);
}

static void gate_up_few(struct work *r, const struct block_pass *p, const struct few_rows *f,
                        const void *x)
{
    const struct block *b = p->b;
    const struct expert_acts *e = &p->a->experts;
    const int N = acts_rows(p->a), C = p->n->c.hidden_size;
    if (f->gates.blocks)
        OP(r, nj_expert_gemv_swiglu_blocks(r->s, p->n->T, (int)f->gates.type,
                                           &(struct nj_expert_gemv_swiglu_blocks){
                                               .act = e->act,
                                               .x = x,
                                               .gate = f->gates.blocks,
                                               .up = f->ups.blocks,
                                               .bias = block_weight(p, ROLE_EXPERT_GATE_BIAS),
                                               .chosen = e->chosen,
                                               .N = N,
                                               .J = b->experts_used,
                                               .E = b->experts,
                                               .I = b->ffn_size,
                                               .C = C,
                                               .limit = b->glu_limit,
                                               .alpha = b->glu_alpha}));
    else
        OP(r, nj_expert_gemv_swiglu(
                  r->s, p->n->T,
                  &(struct nj_expert_gemv_swiglu){.act = e->act,
                                                  .x = x,
                                                  .w = p->matrix[EXPERTS_GATE_UP].data,
                                                  .bias = block_weight(p, ROLE_EXPERT_GATE_BIAS),
                                                  .chosen = e->chosen,
                                                  .N = N,
                                                  .J = b->experts_used,
                                                  .E = b->experts,
                                                  .I = b->ffn_size,
                                                  .C = C,
                                                  .limit = b->glu_limit,
                                                  .alpha = b->glu_alpha}));
}

/* Add the output to y. */
static void down_few(struct work *r, const struct block_pass *p, const struct few_rows *f, void *y)
{
    const struct block *b = p->b;
    const struct expert_acts *e = &p->a->experts;
    const int N = acts_rows(p->a), C = p->n->c.hidden_size;
    if (f->downs.blocks)
        OP(r, nj_expert_gemv_down_blocks(r->s, p->n->T, (int)f->downs.type,
                                         &(struct nj_expert_gemv_down_blocks){
                                             .y = y,
                                             .act = e->act,
                                             .w = f->downs.blocks,
                                             .bias = block_weight(p, ROLE_EXPERT_DOWN_BIAS),
                                             .chosen = e->chosen,
                                             .weight = e->weight,
                                             .N = N,
                                             .J = b->experts_used,
                                             .E = b->experts,
                                             .I = b->ffn_size,
                                             .C = C}));
    else
        OP(r, nj_expert_gemv_down(
                  r->s, p->n->T,
                  &(struct nj_expert_gemv_down){.y = y,
                                                .act = e->act,
                                                .w = p->matrix[EXPERTS_DOWN].data,
                                                .bias = block_weight(p, ROLE_EXPERT_DOWN_BIAS),
                                                .chosen = e->chosen,
                                                .weight = e->weight,
                                                .N = N,
                                                .J = b->experts_used,
                                                .E = b->experts,
                                                .I = b->ffn_size,
                                                .C = C}));
}

/* Compute a decoder's step of few rows and return true; return false if they choose more experts than the layer has, or
 * if no kernel reads the weights. */
static bool forward_few(struct work *r, const struct block_pass *p)
{
    const size_t bytes =
        (size_t)acts_rows(p->a) * (size_t)p->n->c.hidden_size * dtype_bytes(p->n->T);
    struct few_rows f;
    if (p->a->mode != ACTS_DECODE || acts_rows(p->a) * p->b->experts_used > p->b->experts ||
        !can_read_layer(r, p, &f))
        return false;
    if (!shared_expert_fwd(r, p))
        OP(r, nj_zero(r->s, p->v.output, bytes));
    route(r, p, block_rows(p));
    gate_up_few(r, p, &f, block_rows(p));
    down_few(r, p, &f, p->v.output);
    return true;
}

static void compute_arrays(struct work *r, const struct block_pass *p)
{
    experts_use_kept(p);
    route(r, p, block_rows(p));
    experts_add_shares(r, p);
    sort(r, p);
    gate_up(r, p);
}

/* Quantized matrices are expanded into the same memory one after the other, each before its products. */
static void forward(struct work *r, const struct block_pass *p)
{
    if (forward_few(r, p))
        return;
    const void *shared = shared_expert_fwd(r, p);
    compute_arrays(r, p);
    down(r, p, shared);
}

/* ---- a decoder's step of few rows ---- */

static bool has_step(const struct work *r, const struct block_pass *p)
{
    struct few_rows unused;
    return can_read_layer(r, p, &unused);
}

static void step(struct work *r, const struct block_pass *p)
{
    struct few_rows f;
    CHECK(can_read_layer(r, p, &f));
    norm_fwd(r, p, NULL);
    route(r, p, p->a->y);
    shared_expert_step(r, p);
    gate_up_few(r, p, &f, p->a->y);
    down_few(r, p, &f, p->v.x);
}

const struct block_ops experts_ops = {
    .arrays = EXPERTS_ARRAYS,
    .dropped = RECOMPUTE_MLP,
    .array_bytes = array_bytes,
    .carve = carve,
    .carve_backward = experts_carve_backward,
    .forward = forward,
    .compute_arrays = compute_arrays,
    .backward = experts_backward,
    .has_step = has_step,
    .decoder_step = step,
};
