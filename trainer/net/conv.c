/* SPDX-License-Identifier: Apache-2.0
 *
 * conv.c: a gated short convolution as a block: out(c * conv(b * x)), where b, c and x are the thirds of a product with
 * the normed rows. The convolution is causal and stays within a document; a decoder keeps the last rows of b * x.
 */
#include "base/checked.h"
#include "net/convolution.h"
#include "net/layer_gemm.h"
#include "net/norm.h"
#include "net/step_product.h"

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

/* Return the convolution, which computes a->conv.y, the input of the output product. */
static struct convolution convolution_of(const struct block_pass *p)
{
    const struct thirds in = thirds_of(p, p->v.kept[THIRDS]);
    const int X = p->b->channels;
    return (struct convolution){.taps = ROLE_CONV_TAPS,
                                .x = in.x,
                                .gate_in = in.b,
                                .gate_out = in.c,
                                .y = p->a->conv.y,
                                .channels = X,
                                .ld = 3 * X,
                                .act = 0};
}

static void compute_arrays(struct work *r, const struct block_pass *p)
{
    product_fwd(r, p->a, &p->matrix[CONV_IN], p->v.kept[THIRDS], block_rows(p));
}

static void forward(struct work *r, const struct block_pass *p)
{
    const struct convolution c = convolution_of(p);
    /* 1. b, c and x */
    compute_arrays(r, p);
    /* 2. convolution */
    if (p->a->mode == ACTS_DECODE)
        convolution_step(r, p, &c);
    else
        convolution_fwd(r, p, &c);
    if (p->a->mode == ACTS_INFER && p->a->cache)
        convolution_store(r, p, &c);
    /* 3. output */
    product_fwd(r, p->a, &p->matrix[CONV_OUT], p->v.output, p->a->conv.y);
}

/* ---- backward ---- */

static void backward(struct work *r, const struct block_pass *p)
{
    struct acts *a = p->a;
    const struct matrix *in = &p->matrix[CONV_IN], *out = &p->matrix[CONV_OUT];
    const void *dy = block_gradient(p), *x = block_rows(p);
    const struct convolution c = convolution_of(p);
    const struct thirds gradient = thirds_of(p, a->conv.dthirds);
    /* 1. output of the convolution, which is computed again for the gradient of the matrix behind it */
    convolution_fwd(r, p, &c);
    product_gradient(r, a, out, dy);
    product_dw(r, a, out, dy, a->conv.y);
    product_dx(r, a, out, a->conv.dy, dy, a->conv.y);
    /* 2. b, c and x */
    convolution_bwd(
        r, p, &c,
        &(struct convolution_gradients){
            .dy = a->conv.dy, .dx = gradient.x, .dgate_in = gradient.b, .dgate_out = gradient.c});
    /* 3. normed rows */
    norm_again(r, p);
    product_gradient(r, a, in, a->conv.dthirds);
    product_dw(r, a, in, a->conv.dthirds, x);
    product_dx(r, a, in, a->branch, a->conv.dthirds, x);
}

/* ---- a decoder's step of few rows ---- */

static void step(struct work *r, const struct block_pass *p)
{
    const struct convolution c = convolution_of(p);
    step_normed_product(r, p, CONV_IN, p->v.kept[THIRDS], NULL);
    convolution_step(r, p, &c);
    step_add_product(r, p, CONV_OUT, p->a->conv.y);
}

const struct block_ops conv_ops = {
    .arrays = ARRAYS,
    .dropped = RECOMPUTE_BLOCK,
    .array_bytes = array_bytes,
    .carve = carve,
    .carve_backward = carve_backward,
    .forward = forward,
    .compute_arrays = compute_arrays,
    .backward = backward,
    .decoder_step = step,
};
