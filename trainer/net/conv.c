/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.c: a gated short convolution as a block: out(c * conv(b * x)), where b, c and x are the thirds of a product with
 * the normed rows. The convolution is causal and stays within a document; a decoder keeps the last rows of b * x.
 */
#include "base/checked.h"
#include "net/cache.h"
#include "net/layer_gemm.h"
#include "net/norm.h"
#include "nojit_ops.h"

/* [N, 3 X] b, c and x, for X channels. */
enum { THIRDS, ARRAYS };
_Static_assert((int)ARRAYS <= (int)BLOCK_ARRAYS_MOST, "struct acts has no place for an array");

/* ---- memory ---- */

static size_t array_bytes(const struct net *n, const struct block *b, size_t rows,
                          enum acts_mode mode, int array)
{
    (void)mode;
    (void)array;
    return size_product(rows, 3, size_mul((size_t)b->channels, dtype_bytes(n->T)));
}

static int64_t channels(const struct block *b)
{
    return b->channels;
}

static size_t row_bytes(const struct net *n)
{
    return size_mul((size_t)arch_most(&n->c.arch, n->c.layers, channels), dtype_bytes(n->T));
}

static void carve(const struct net *n, size_t rows, struct carve *m, struct acts *a)
{
    a->conv.y = carve_take(m, size_mul(rows, row_bytes(n)));
}

static void carve_backward(const struct net *n, size_t rows, struct carve *m, struct acts *a)
{
    a->conv.dy = carve_take(m, size_mul(rows, row_bytes(n)));
    a->conv.dthirds = carve_take(m, size_product(rows, 3, row_bytes(n)));
}

/* ---- forward ---- */

/* The three parts of rows of a product. */
struct thirds {
    char *b, *c, *x;
};

static struct thirds thirds_of(const struct block_pass *p, void *rows)
{
    const size_t third = (size_t)p->b->channels * dtype_bytes(p->n->T);
    char *at = rows;
    return (struct thirds){at, at + third, at + 2 * third};
}

/* Compute a->conv.y, the input of the output product. */
static void convolve(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const struct thirds in = thirds_of(p, p->v.kept[THIRDS]);
    const int X = p->b->channels;
    OP(r, nj_conv_fwd(r->s, p->n->T,
                      &(struct nj_conv_fwd){.y = a->conv.y,
                                            .x = in.x,
                                            .w = block_weight(p, ROLE_CONV_TAPS),
                                            .bias = NULL,
                                            .gate_in = in.b,
                                            .gate_out = in.c,
                                            .doc_start = p->rows->doc_start,
                                            .B = a->B,
                                            .S = a->S,
                                            .X = X,
                                            .L = p->b->taps,
                                            .ld = 3 * X,
                                            .act = 0}));
}

/* Compute it for the next row of each sequence, from the rows in the cache, which this one joins. */
static void convolve_next(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const struct thirds in = thirds_of(p, p->v.kept[THIRDS]);
    const int X = p->b->channels;
    OP(r, nj_conv_step(r->s, p->n->T,
                       &(struct nj_conv_step){.y = a->conv.y,
                                              .state = cache_layer(p->n, a->cache, p->layer).conv,
                                              .x = in.x,
                                              .w = block_weight(p, ROLE_CONV_TAPS),
                                              .bias = NULL,
                                              .gate_in = in.b,
                                              .gate_out = in.c,
                                              .slot = p->rows->slot,
                                              .pos = p->rows->pos,
                                              .R = acts_rows(a),
                                              .X = X,
                                              .L = p->b->taps,
                                              .ld = 3 * X,
                                              .G = a->cache->slots,
                                              .act = 0}));
}

/* Store the last rows of the prompts of a pass in the cache. */
static void store(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const struct thirds in = thirds_of(p, p->v.kept[THIRDS]);
    const int X = p->b->channels;
    OP(r, nj_conv_store(r->s, p->n->T,
                        &(struct nj_conv_store){.state = cache_layer(p->n, a->cache, p->layer).conv,
                                                .x = in.x,
                                                .gate_in = in.b,
                                                .doc_start = p->rows->doc_start,
                                                .slot = p->rows->slot,
                                                .B = a->B,
                                                .S = a->S,
                                                .X = X,
                                                .L = p->b->taps,
                                                .ld = 3 * X,
                                                .G = a->cache->slots}));
}

static void compute_arrays(struct work *r, const struct block_pass *p)
{
    product_fwd(r, p->a, &p->matrix[CONV_IN], p->v.kept[THIRDS], block_rows(p));
}

static void forward(struct work *r, const struct block_pass *p)
{
    /* 1. b, c and x */
    compute_arrays(r, p);
    /* 2. convolution */
    if (p->a->mode == ACTS_DECODE)
        convolve_next(r, p);
    else
        convolve(r, p);
    if (p->a->mode == ACTS_INFER && p->a->cache)
        store(r, p);
    /* 3. output */
    product_fwd(r, p->a, &p->matrix[CONV_OUT], p->v.output, p->a->conv.y);
}

/* ---- backward ---- */

/* Compute the gradients of b, c and x, and of the taps, from that of the convolution. */
static void convolve_bwd(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const struct thirds in = thirds_of(p, p->v.kept[THIRDS]);
    const struct thirds gradient = thirds_of(p, a->conv.dthirds);
    const int N = acts_rows(a), X = p->b->channels, L = p->b->taps;
    OP(r, nj_conv_bwd(r->s, p->n->T,
                      &(struct nj_conv_bwd){.dx = gradient.x,
                                            .dgate_in = gradient.b,
                                            .dgate_out = gradient.c,
                                            .dw_part = a->part,
                                            .dbias_part = NULL,
                                            .dy = a->conv.dy,
                                            .x = in.x,
                                            .w = block_weight(p, ROLE_CONV_TAPS),
                                            .bias = NULL,
                                            .gate_in = in.b,
                                            .gate_out = in.c,
                                            .doc_start = p->rows->doc_start,
                                            .B = a->B,
                                            .S = a->S,
                                            .X = X,
                                            .L = L,
                                            .ld = 3 * X,
                                            .P = partial_sums(N),
                                            .act = 0}));
    norm_add_columns(r, p->n, p->first[ROLE_CONV_TAPS], a->part, N, X * L);
}

static void backward(struct work *r, const struct block_pass *p)
{
    struct acts *a = p->a;
    const struct matrix *in = &p->matrix[CONV_IN], *out = &p->matrix[CONV_OUT];
    const void *dy = block_gradient(p), *x = block_rows(p);
    /* 1. output of the convolution, which is computed again for the gradient of the matrix behind it */
    convolve(r, p);
    product_gradient(r, a, out, dy);
    product_dw(r, a, out, dy, a->conv.y);
    product_dx(r, a, out, a->conv.dy, dy, a->conv.y);
    /* 2. b, c and x */
    convolve_bwd(r, p);
    /* 3. normed rows */
    norm_again(r, p);
    product_gradient(r, a, in, a->conv.dthirds);
    product_dw(r, a, in, a->conv.dthirds, x);
    product_dx(r, a, in, a->branch, a->conv.dthirds, x);
}

/* There is no kernel for a step of few rows. */
const struct block_ops conv_ops = {
    .arrays = ARRAYS,
    .dropped = RECOMPUTE_BLOCK,
    .array_bytes = array_bytes,
    .carve = carve,
    .carve_backward = carve_backward,
    .forward = forward,
    .compute_arrays = compute_arrays,
    .backward = backward,
};
