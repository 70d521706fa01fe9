/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c: attention as a block: o = attention(rotate(norm(x Wqkv + b))) Wo. Heads are normed only if the block
 * has that feature, and then there is no bias.
 */
#include "base/checked.h"
#include "net/heads.h"
#include "net/layer_gemm.h"
#include "net/norm.h"
#include "net/step_product.h"
#include "net/tables.h"
#include "nojit_ops.h"

/* ---- memory ---- */

/* Return the number of elements of a row of queries, keys and values, or of outputs, with heads as kernels have
 * them. */
static int64_t padded_qkv(const struct block *b)
{
    return ((int64_t)b->heads + 2 * (int64_t)b->kv_heads) * block_padded_dim(b);
}

static int64_t padded_output(const struct block *b)
{
    return (int64_t)b->heads * block_padded_dim(b);
}

static int64_t heads(const struct block *b)
{
    return b->heads;
}

static bool is_gated(const struct block *b)
{
    return block_has(b, FEATURE_GATE);
}

static size_t array_bytes(const struct net *n, const struct block *b, size_t rows,
                          enum acts_mode mode, int array)
{
    const size_t e = dtype_bytes(n->T), heads = (size_t)b->heads, keys = (size_t)b->kv_heads;
    const size_t qkv = size_product(rows, (size_t)padded_qkv(b), e);
    const bool normed = heads_are_normed(b);
    const size_t bytes[HEADS_ARRAYS] = {
        [QKV] = qkv,
        [RAW] = normed && mode == ACTS_TRAIN ? qkv : 0,
        [RSTD_QK] = normed ? size_product(rows, size_add(heads, keys), sizeof(float)) : 0,
        [O] = size_product(rows, (size_t)padded_output(b), e),
        [LSE] = size_product(rows, heads, sizeof(float)),
        [GATES] = is_gated(b) ? size_product(rows, (size_t)padded_output(b), e) : 0,
    };
    return bytes[array];
}

/* Return the number of elements that a row needs beside the arrays of a block: for the product of heads that are
 * mapped, or for outputs that are gated. */
static int64_t beside(const struct net *n, const struct block *b)
{
    return arch_maps_heads(&n->c.arch, b) ? block_qkv_size(b) : is_gated(b) ? padded_output(b) : 0;
}

static void carve(const struct net *n, size_t rows, struct carve *m, struct acts *a)
{
    int64_t most = 0;
    for (int l = 0; l < n->c.layers; l++) {
        const struct block *b = arch_block(&n->c.arch, l, BLOCK_ATTENTION);
        if (b && beside(n, b) > most)
            most = beside(n, b);
    }
    a->heads = carve_take(m, size_product(rows, (size_t)most, dtype_bytes(n->T)));
}

static int64_t gated(const struct block *b)
{
    return is_gated(b);
}

static void carve_backward(const struct net *n, size_t rows, struct carve *m, struct acts *a)
{
    const struct arch *arch = &n->c.arch;
    const size_t e = dtype_bytes(n->T);
    const size_t qkv = (size_t)arch_most(arch, n->c.layers, padded_qkv);
    const size_t out = (size_t)arch_most(arch, n->c.layers, padded_output);
    a->dqkv = carve_take(m, size_product(rows, qkv, e));
    a->dout = carve_take(m, size_product(rows, out, e));
    if (arch_most(arch, n->c.layers, gated) > 0)
        a->second = carve_take(m, size_product(rows, (size_t)n->c.hidden_size, e));
    a->delta = carve_take(
        m, size_product(rows, (size_t)arch_most(arch, n->c.layers, heads), sizeof(float)));
}

/* ---- forward ---- */

/* Let the sinks take their weight from the keys; the backward pass of attention then holds as it is. */
static void sinks_fwd(struct work *r, const struct block_pass *p)
{
    if (block_has(p->b, FEATURE_SINKS))
        OP(r, nj_sink_fwd(r->s, p->n->T,
                          &(struct nj_sink_fwd){.o = p->v.kept[O],
                                                .lse = p->v.kept[LSE],
                                                .sink = block_weight(p, ROLE_SINKS),
                                                .B = p->a->B,
                                                .S = p->a->S,
                                                .H = p->b->heads,
                                                .D = block_padded_dim(p->b)}));
}

/* Compute o from raw, after adding the bias and rotating; a decoder attends to the sequences in its cache, to which
 * keys and values are added. */
static void attend(struct work *r, const struct block_pass *p, const void *bias)
{
    const struct acts *a = p->a;
    const bool decoding = a->mode == ACTS_DECODE;
    bias = heads_map_in(r, p, bias);
    if (!decoding || heads_are_normed(p->b))
        heads_fwd(r, p, bias);
    if (decoding) {
        heads_attend_cached(r, p, bias);
        return;
    }
    OP(r, nj_attn_fwd(r->s, p->n->T, block_padded_dim(p->b),
                      &(struct nj_attn_fwd){.o = p->v.kept[O],
                                            .lse = p->v.kept[LSE],
                                            .qkv = p->v.kept[QKV],
                                            .doc_start = p->rows->doc_start,
                                            .B = a->B,
                                            .S = a->S,
                                            .H = p->b->heads,
                                            .K = p->b->kv_heads,
                                            .window = p->b->window,
                                            .scale = block_score_scale(p->b)}));
    sinks_fwd(r, p);
    if (a->cache)
        heads_store(r, p);
}

static void compute_arrays(struct work *r, const struct block_pass *p)
{
    /* 1. q, k and v, and the gate */
    product_fwd(r, p->a, &p->matrix[ATTENTION_QKV], heads_raw(p), block_rows(p));
    if (is_gated(p->b))
        product_fwd(r, p->a, &p->matrix[ATTENTION_GATE], p->v.kept[GATES], block_rows(p));
    /* 2. rotation and attention */
    attend(r, p, block_weight(p, ROLE_Q_BIAS));
}

static void forward(struct work *r, const struct block_pass *p)
{
    compute_arrays(r, p);
    /* 3. output */
    product_fwd(r, p->a, &p->matrix[ATTENTION_O], p->v.output, heads_output(r, p));
}

/* ---- backward ---- */

/* Compute the gradient of the sinks, after that of queries. */
static void sinks_bwd(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const int P = partial_sums(acts_rows(a)), H = p->b->heads;
    if (!block_has(p->b, FEATURE_SINKS) || !p->n->grad)
        return;
    OP(r, nj_sink_bwd(r->s, p->n->T,
                      &(struct nj_sink_bwd){.dsink_part = a->part,
                                            .sink = block_weight(p, ROLE_SINKS),
                                            .lse = p->v.kept[LSE],
                                            .delta = a->delta,
                                            .B = a->B,
                                            .S = a->S,
                                            .H = H,
                                            .P = P}));
    norm_add_columns(r, p->n, p->first[ROLE_SINKS], a->part, acts_rows(a), H);
}

/* Compute dqkv from dout. */
static void attend_bwd(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const struct block *b = p->b;
    OP(r, nj_attn_bwd_dq(r->s, p->n->T, block_padded_dim(b),
                         &(struct nj_attn_bwd_dq){.dqkv = a->dqkv,
                                                  .delta = a->delta,
                                                  .dout = a->dout,
                                                  .qkv = p->v.kept[QKV],
                                                  .o = p->v.kept[O],
                                                  .lse = p->v.kept[LSE],
                                                  .doc_start = p->rows->doc_start,
                                                  .B = a->B,
                                                  .S = a->S,
                                                  .H = b->heads,
                                                  .K = b->kv_heads,
                                                  .window = b->window,
                                                  .scale = block_score_scale(b)}));
    OP(r, nj_attn_bwd_dkv(r->s, p->n->T, block_padded_dim(b),
                          &(struct nj_attn_bwd_dkv){.dqkv = a->dqkv,
                                                    .dout = a->dout,
                                                    .qkv = p->v.kept[QKV],
                                                    .lse = p->v.kept[LSE],
                                                    .delta = a->delta,
                                                    .doc_start = p->rows->doc_start,
                                                    .B = a->B,
                                                    .S = a->S,
                                                    .H = b->heads,
                                                    .K = b->kv_heads,
                                                    .window = b->window,
                                                    .scale = block_score_scale(b)}));
}

/* Add to a->branch the gradient of the rows x that the gate reads. */
static void gate_bwd(struct work *r, const struct block_pass *p, const void *x)
{
    struct acts *a = p->a;
    const struct matrix *gate = &p->matrix[ATTENTION_GATE];
    const int64_t elements = (int64_t)acts_rows(a) * p->n->c.hidden_size;
    product_gradient(r, a, gate, a->heads);
    product_dw(r, a, gate, a->heads, x);
    product_dx(r, a, gate, a->second, a->heads, x);
    OP(r, nj_add(r->s, p->n->T,
                 &(struct nj_add){.y = a->branch, .a = a->branch, .b = a->second, .n = elements}));
}

static void backward(struct work *r, const struct block_pass *p)
{
    struct acts *a = p->a;
    const struct matrix *qkv = &p->matrix[ATTENTION_QKV], *o = &p->matrix[ATTENTION_O];
    const void *dy = block_gradient(p), *x = block_rows(p), *out = heads_output(r, p);
    /* 1. output of attention */
    product_gradient(r, a, o, dy);
    product_dw(r, a, o, dy, out);
    product_dx(r, a, o, heads_output_gradient(p), dy, out);
    heads_output_bwd(r, p);
    /* 2. q, k and v */
    attend_bwd(r, p);
    sinks_bwd(r, p);
    heads_bwd(r, p);
    /* 3. normed rows */
    norm_again(r, p);
    product_gradient(r, a, qkv, heads_gradient(p));
    product_dw(r, a, qkv, heads_gradient(p), x);
    product_dx(r, a, qkv, a->branch, heads_gradient(p), x);
    if (is_gated(p->b))
        gate_bwd(r, p, x);
}

/* ---- a decoder's step of few rows ---- */

static bool has_step(const struct work *r, const struct block_pass *p)
{
    (void)r;
    return !block_has(p->b, FEATURE_O_BIAS) && !arch_maps_heads(&p->n->c.arch, p->b);
}

static void step(struct work *r, const struct block_pass *p)
{
    step_normed_product(r, p, ATTENTION_QKV, heads_raw(p), block_weight(p, ROLE_Q_BIAS));
    if (is_gated(p->b))
        step_normed_product(r, p, ATTENTION_GATE, p->v.kept[GATES], NULL);
    attend(r, p, NULL); /* the bias has been added */
    step_add_product(r, p, ATTENTION_O, heads_output(r, p));
}

const struct block_ops attention_ops = {
    .arrays = HEADS_ARRAYS,
    .dropped = RECOMPUTE_BLOCK,
    .array_bytes = array_bytes,
    .carve = carve,
    .carve_backward = carve_backward,
    .forward = forward,
    .compute_arrays = compute_arrays,
    .backward = backward,
    .has_step = has_step,
    .decoder_step = step,
};
