/* SPDX-License-Identifier: Apache-2.0
 *
 * glu.c: a gated MLP as a block: down(act(gate x) * up x).
 */
#include "base/checked.h"
#include "net/activation.h"
#include "net/layer_gemm.h"
#include "net/norm.h"
#include "net/step_product.h"
#include "nojit_ops.h"

/* [N, 2 I] gate and up; a backward pass without FP8 puts their gradient in their place. */
enum { GATE_UP, ARRAYS };
_Static_assert((int)ARRAYS <= (int)BLOCK_ARRAYS_MOST, "struct acts has no place for an array");

/* ---- memory ---- */

static size_t array_bytes(const struct net *n, const struct block *b, size_t rows,
                          enum acts_mode mode, int array)
{
    (void)mode;
    (void)array;
    return size_product(rows, 2, size_mul((size_t)b->ffn_size, dtype_bytes(n->T)));
}

static int64_t ffn_size(const struct block *b)
{
    return b->ffn_size;
}

/* Return the bytes of the largest activation. */
static size_t act_bytes(const struct net *n, size_t rows)
{
    const int64_t widest = arch_most(&n->c.arch, n->c.layers, ffn_size);
    return size_product(rows, (size_t)widest, dtype_bytes(n->T));
}

static bool reads_act(const struct matrix *down)
{
    return !down->format->e4m3 || !down->x_made;
}

static void carve(const struct net *n, size_t rows, struct carve *m, struct acts *a)
{
    if (net_some(n, BLOCK_GLU, GLU_DOWN, reads_act))
        a->act = carve_take(m, act_bytes(n, rows));
}

static void carve_backward(const struct net *n, size_t rows, struct carve *m, struct acts *a)
{
    /* without adapters nothing reads the activation after its gradient is written */
    a->dact = net_some(n, BLOCK_GLU, GLU_DOWN, matrix_has_adapters)
                  ? carve_take(m, act_bytes(n, rows))
                  : a->act;
}

/* ---- forward ---- */

/* Write the product of the rows and the weights of gate and up to gu, and return false. If one kernel multiplies and
 * activates, write a->act, and gu only if a backward pass will read it, and return true. Recomputation, and passes
 * that keep nothing, go the same way as training, so their bits are the same. */
static bool gate_up(struct work *r, const struct block_pass *p)
{
    struct acts *a = p->a;
    const struct matrix *m = &p->matrix[GLU_GATE_UP];
    void *gu = p->v.kept[GATE_UP];
    const bool fused = a->mode != ACTS_DECODE && activation_fused(r, p);
    const void *w = fused ? product_weight(r, a, m) : NULL;
    if (!w) {
        product_fwd(r, a, m, gu, block_rows(p));
        return false;
    }
    activation_gemm(r, p, a->mode == ACTS_TRAIN ? gu : NULL, block_rows(p), w);
    return true;
}

static void compute_arrays(struct work *r, const struct block_pass *p)
{
    gate_up(r, p);
}

static void forward(struct work *r, const struct block_pass *p)
{
    const struct matrix *down = &p->matrix[GLU_DOWN];
    /* 1. gate and up, and the activation */
    if (!gate_up(r, p)) {
        if (product_x_made(p->a, down))
            activation_quantize(r, p, p->v.kept[GATE_UP]);
        else
            activation_fwd(r, p, p->v.kept[GATE_UP]);
    }
    /* 2. down */
    product_fwd(r, p->a, down, p->v.output, p->a->act);
}

/* ---- backward ---- */

static void backward(struct work *r, const struct block_pass *p)
{
    struct acts *a = p->a;
    const struct matrix *gate_up = &p->matrix[GLU_GATE_UP], *down = &p->matrix[GLU_DOWN];
    const bool made = product_x_made(a, down);
    const void *dy = block_gradient(p), *x = block_rows(p);
    void *gu = p->v.kept[GATE_UP];
    /* 1. The activation is computed with the gradient of gate and up, in the place of its own gradient; adapters read
     * it before that. */
    if (matrix_has_adapters(down))
        activation_fwd(r, p, gu);
    product_gradient(r, a, down, dy);
    product_dx(r, a, down, a->dact, dy, a->act);
    /* 2. gate and up */
    if (made)
        activation_bwd_quantize(r, p, gu);
    else
        activation_bwd(r, p, gu);
    product_dw(r, a, down, dy, a->dact);
    /* 3. normed rows */
    norm_again(r, p);
    if (!made)
        product_gradient(r, a, gate_up, gu);
    product_dw(r, a, gate_up, gu, x);
    product_dx(r, a, gate_up, a->branch, gu, x);
}

/* ---- a decoder's step of few rows ---- */

static bool has_step(const struct work *r, const struct block_pass *p)
{
    const struct block *b = p->b;
    (void)r;
    return activation_is_silu(b) && b->ffn_size % 8 == 0 && !block_has(b, FEATURE_MLP_BIAS);
}

static void step(struct work *r, const struct block_pass *p)
{
    step_normed_swiglu(r, p, GLU_GATE_UP, p->a->act);
    step_add_product(r, p, GLU_DOWN, p->a->act);
}

const struct block_ops glu_ops = {
    .arrays = ARRAYS,
    .dropped = RECOMPUTE_MLP,
    .array_bytes = array_bytes,
    .carve = carve,
    .carve_backward = carve_backward,
    .forward = forward,
    .compute_arrays = compute_arrays,
    .backward = backward,
    .has_step = has_step,
    .decoder_step = step,
};
