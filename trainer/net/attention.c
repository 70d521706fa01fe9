/* SPDX-License-Identifier: Apache-2.0
 *
 * attention.c: attention as a block: o = attention(rotate(norm(x Wqkv + b))) Wo. Heads are normed only if the block
 * has that feature, and then there is no bias.
 */
#include "base/checked.h"
#include "net/cache.h"
#include "net/layer_gemm.h"
#include "net/norm.h"
#include "nojit_ops.h"

/* Arrays that the backward pass reads. Without a norm of heads, and outside of training, QKV is rotated in
 * place and there is no RAW. */
enum {
    QKV, /* [N, (H + 2K) D] q, k, v, rotated; in a decoder's step without a norm of heads, not yet rotated */
    RAW,     /* [N, (H + 2K) D] q, k, v before norm and rotation */
    RSTD_QK, /* [N, H + K] 1 / root mean square of the heads of q and k */
    O,       /* [N, H D] output of attention */
    LSE,     /* [B, H, S] log of the sum of exponentials of the scores */
    ARRAYS
};
_Static_assert((int)ARRAYS <= (int)BLOCK_ARRAYS_MOST, "struct acts has no place for an array");

static bool is_normed(const struct block *b)
{
    return block_has(b, FEATURE_QK_NORM);
}

/* Return the rotation frequencies of the block's heads, on the device. */
static const float *inv_freq_of(const struct block_pass *p)
{
    return p->n->inv_freq + config_frequencies(&p->n->c, p->b->rope);
}

static float amplitude_of(const struct block_pass *p)
{
    return rope_amplitude(&p->n->c.arch.rope[p->b->rope]);
}

/* ---- memory ---- */

static size_t array_bytes(const struct net *n, const struct block *b, size_t rows,
                          enum acts_mode mode, int array)
{
    const size_t e = dtype_bytes(n->T), heads = (size_t)b->heads, keys = (size_t)b->kv_heads;
    const size_t qkv = size_product(rows, (size_t)block_qkv_size(b), e);
    const size_t bytes[ARRAYS] = {
        [QKV] = qkv,
        [RAW] = is_normed(b) && mode == ACTS_TRAIN ? qkv : 0,
        [RSTD_QK] = is_normed(b) ? size_product(rows, size_add(heads, keys), sizeof(float)) : 0,
        [O] = size_product(rows, heads, size_mul((size_t)b->head_dim, e)),
        [LSE] = size_product(rows, heads, sizeof(float)),
    };
    return bytes[array];
}

static void *raw_of(const struct block_pass *p)
{
    return is_normed(p->b) && p->v.kept[RAW] ? p->v.kept[RAW] : p->v.kept[QKV];
}

static int64_t heads(const struct block *b)
{
    return b->heads;
}

static int64_t output_size(const struct block *b)
{
    return (int64_t)b->heads * b->head_dim;
}

static void carve_backward(const struct net *n, size_t rows, struct carve *m, struct acts *a)
{
    const struct arch *arch = &n->c.arch;
    const size_t e = dtype_bytes(n->T);
    const size_t qkv = (size_t)arch_most(arch, n->c.layers, block_qkv_size);
    const size_t out = (size_t)arch_most(arch, n->c.layers, output_size);
    a->dqkv = carve_take(m, size_product(rows, qkv, e));
    a->dout = carve_take(m, size_product(rows, out, e));
    a->delta = carve_take(
        m, size_product(rows, (size_t)arch_most(arch, n->c.layers, heads), sizeof(float)));
}

/* ---- forward ---- */

/* Run attention of the next row of each sequence over those in the cache, which gets its keys and values. Without a
 * norm of heads the kernel also rotates the row, and qkv stays as the GEMM left it: the number of kernels limits
 * the speed of a step. */
static void attend_cached(struct work *r, const struct block_pass *p, const void *bias)
{
    const struct block *b = p->b;
    const struct acts *a = p->a;
    const enum nj_dtype T = p->n->T;
    const float *inv_freq = is_normed(b) ? NULL : inv_freq_of(p);
    const struct cache *to = a->cache;
    const struct layer_cache l = cache_layer(p->n, to, p->layer);
    if (l.scales)
        OP(r, nj_attn_decode_q8(r->s, T, b->head_dim,
                                &(struct nj_attn_decode_q8){.o = p->v.kept[O],
                                                            .part = a->chunk_sums,
                                                            .k = l.keys,
                                                            .v = l.values,
                                                            .kv_scale = l.scales,
                                                            .qkv = p->v.kept[QKV],
                                                            .bias = bias,
                                                            .inv_freq = inv_freq,
                                                            .slot = p->rows->slot,
                                                            .pos = p->rows->pos,
                                                            .R = acts_rows(a),
                                                            .H = b->heads,
                                                            .K = b->kv_heads,
                                                            .P = to->positions,
                                                            .G = to->slots,
                                                            .C = a->chunks,
                                                            .window = b->window,
                                                            .scale = block_score_scale(b),
                                                            .amplitude = amplitude_of(p)}));
    else
        OP(r, nj_attn_decode(r->s, T, b->head_dim,
                             &(struct nj_attn_decode){.o = p->v.kept[O],
                                                      .part = a->chunk_sums,
                                                      .k = l.keys,
                                                      .v = l.values,
                                                      .qkv = p->v.kept[QKV],
                                                      .bias = bias,
                                                      .inv_freq = inv_freq,
                                                      .slot = p->rows->slot,
                                                      .pos = p->rows->pos,
                                                      .R = acts_rows(a),
                                                      .H = b->heads,
                                                      .K = b->kv_heads,
                                                      .P = to->positions,
                                                      .G = to->slots,
                                                      .C = a->chunks,
                                                      .window = b->window,
                                                      .scale = block_score_scale(b),
                                                      .amplitude = amplitude_of(p)}));
    if (a->chunks > 1)
        OP(r, nj_attn_decode_merge(r->s, T, b->head_dim,
                                   &(struct nj_attn_decode_merge){.o = p->v.kept[O],
                                                                  .part = a->chunk_sums,
                                                                  .slot = p->rows->slot,
                                                                  .pos = p->rows->pos,
                                                                  .R = acts_rows(a),
                                                                  .H = b->heads,
                                                                  .C = a->chunks,
                                                                  .window = b->window}));
}

/* Store keys and values of a pass over prompts in the cache. */
static void store(struct work *r, const struct block_pass *p)
{
    const struct block *b = p->b;
    const struct cache *to = p->a->cache;
    const struct layer_cache l = cache_layer(p->n, to, p->layer);
    if (l.scales)
        OP(r, nj_kv_store_q8(r->s, p->n->T, b->head_dim,
                             &(struct nj_kv_store_q8){.k = l.keys,
                                                      .v = l.values,
                                                      .kv_scale = l.scales,
                                                      .qkv = p->v.kept[QKV],
                                                      .slot = p->rows->slot,
                                                      .pos = p->rows->pos,
                                                      .N = acts_rows(p->a),
                                                      .H = b->heads,
                                                      .K = b->kv_heads,
                                                      .P = to->positions,
                                                      .G = to->slots}));
    else
        OP(r, nj_kv_store(r->s, p->n->T, b->head_dim,
                          &(struct nj_kv_store){.k = l.keys,
                                                .v = l.values,
                                                .qkv = p->v.kept[QKV],
                                                .slot = p->rows->slot,
                                                .pos = p->rows->pos,
                                                .N = acts_rows(p->a),
                                                .H = b->heads,
                                                .K = b->kv_heads,
                                                .P = to->positions,
                                                .G = to->slots}));
}

/* Compute qkv = rotate(norm(raw + bias)), in place if no backward pass needs raw; with a norm there is no bias. */
static void rotate(struct work *r, const struct block_pass *p, const void *bias)
{
    const struct block *b = p->b;
    const int N = acts_rows(p->a);
    if (is_normed(b))
        OP(r, nj_qknorm_rope_fwd(r->s, p->n->T,
                                 &(struct nj_qknorm_rope_fwd){.y = p->v.kept[QKV],
                                                              .rstd = p->v.kept[RSTD_QK],
                                                              .x = raw_of(p),
                                                              .wq = block_weight(p, ROLE_Q_NORM),
                                                              .wk = block_weight(p, ROLE_K_NORM),
                                                              .inv_freq = inv_freq_of(p),
                                                              .pos = p->rows->pos,
                                                              .N = N,
                                                              .H = b->heads,
                                                              .K = b->kv_heads,
                                                              .D = b->head_dim,
                                                              .eps = p->n->c.rms_eps,
                                                              .amplitude = amplitude_of(p)}));
    else
        OP(r, nj_rope_fwd(r->s, p->n->T,
                          &(struct nj_rope_fwd){.qkv = p->v.kept[QKV],
                                                .bias = bias,
                                                .inv_freq = inv_freq_of(p),
                                                .pos = p->rows->pos,
                                                .N = N,
                                                .H = b->heads,
                                                .K = b->kv_heads,
                                                .D = b->head_dim,
                                                .amplitude = amplitude_of(p)}));
}

/* Compute o from raw, after adding the bias and rotating; a decoder attends to the sequences in its cache, to which
 * keys and values are added. */
static void attend(struct work *r, const struct block_pass *p, const void *bias)
{
    const struct acts *a = p->a;
    const bool decoding = a->mode == ACTS_DECODE;
    if (!decoding || is_normed(p->b))
        rotate(r, p, bias);
    if (decoding) {
        attend_cached(r, p, bias);
        return;
    }
    OP(r, nj_attn_fwd(r->s, p->n->T, p->b->head_dim,
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
    if (a->cache)
        store(r, p);
}

static void compute_arrays(struct work *r, const struct block_pass *p)
{
    /* 1. q, k and v */
    product_fwd(r, p->a, &p->matrix[ATTENTION_QKV], raw_of(p), block_rows(p));
    /* 2. rotation and attention */
    attend(r, p, block_weight(p, ROLE_Q_BIAS));
}

static void forward(struct work *r, const struct block_pass *p)
{
    compute_arrays(r, p);
    /* 3. output */
    product_fwd(r, p->a, &p->matrix[ATTENTION_O], p->v.output, p->v.kept[O]);
}

/* ---- backward ---- */

/* Turn dqkv, the gradient of the rotated rows, into that of the product, and compute the gradients of gains and
 * biases. */
static void unrotate(struct work *r, const struct block_pass *p)
{
    const struct net *n = p->n;
    const struct acts *a = p->a;
    const struct block *b = p->b;
    const int N = acts_rows(a), P = partial_sums(N), D = b->head_dim;
    const int64_t bias = p->first[ROLE_Q_BIAS];
    if (is_normed(b)) {
        float *part_k = a->part + (size_t)P * (size_t)D;
        OP(r, nj_qknorm_rope_bwd(r->s, n->T,
                                 &(struct nj_qknorm_rope_bwd){.dqkv = a->dqkv,
                                                              .dwq_part = a->part,
                                                              .dwk_part = part_k,
                                                              .x = raw_of(p),
                                                              .rstd = p->v.kept[RSTD_QK],
                                                              .wq = block_weight(p, ROLE_Q_NORM),
                                                              .wk = block_weight(p, ROLE_K_NORM),
                                                              .inv_freq = inv_freq_of(p),
                                                              .pos = p->rows->pos,
                                                              .N = N,
                                                              .H = b->heads,
                                                              .K = b->kv_heads,
                                                              .D = D,
                                                              .P = P,
                                                              .amplitude = amplitude_of(p)}));
        norm_add_columns(r, n, p->first[ROLE_Q_NORM], a->part, N, D);
        norm_add_columns(r, n, p->first[ROLE_K_NORM], part_k, N, D);
        return;
    }
    float *part = bias < 0 || !n->grad ? NULL : a->part;
    OP(r, nj_rope_bwd(r->s, n->T,
                      &(struct nj_rope_bwd){.dqkv = a->dqkv,
                                            .dbias_part = part,
                                            .inv_freq = inv_freq_of(p),
                                            .pos = p->rows->pos,
                                            .N = N,
                                            .H = b->heads,
                                            .K = b->kv_heads,
                                            .D = D,
                                            .P = P,
                                            .amplitude = amplitude_of(p)}));
    if (part)
        norm_add_columns(r, n, bias, part, N, (int)block_qkv_size(b));
}

/* Compute dqkv from dout. */
static void attend_bwd(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const struct block *b = p->b;
    OP(r, nj_attn_bwd_dq(r->s, p->n->T, b->head_dim,
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
    OP(r, nj_attn_bwd_dkv(r->s, p->n->T, b->head_dim,
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

static void backward(struct work *r, const struct block_pass *p)
{
    struct acts *a = p->a;
    const struct matrix *qkv = &p->matrix[ATTENTION_QKV], *o = &p->matrix[ATTENTION_O];
    const void *dy = block_gradient(p), *x = block_rows(p);
    /* 1. output of attention */
    product_gradient(r, a, o, dy);
    product_dw(r, a, o, dy, p->v.kept[O]);
    product_dx(r, a, o, a->dout, dy, p->v.kept[O]);
    /* 2. q, k and v */
    attend_bwd(r, p);
    unrotate(r, p);
    /* 3. normed rows */
    norm_again(r, p);
    product_gradient(r, a, qkv, a->dqkv);
    product_dw(r, a, qkv, a->dqkv, x);
    product_dx(r, a, qkv, a->branch, a->dqkv, x);
}

/* ---- a decoder's step of few rows ---- */

static void step(struct work *r, const struct block_pass *p)
{
    const struct net *n = p->n;
    const int M = acts_rows(p->a), C = n->c.hidden_size, rows = (int)block_qkv_size(p->b);
    OP(r, nj_gemv_norm(r->s, n->T, M,
                       &(struct nj_gemv_norm){.y = raw_of(p),
                                              .x = p->v.x,
                                              .g = block_weight(p, ROLE_INPUT_NORM),
                                              .w = p->matrix[ATTENTION_QKV].data,
                                              .b = block_weight(p, ROLE_Q_BIAS),
                                              .N = rows,
                                              .C = C,
                                              .ld = rows,
                                              .eps = n->c.rms_eps}));
    attend(r, p, NULL); /* gemv_norm has added the bias */
    OP(r, nj_gemv_add(r->s, n->T, M,
                      &(struct nj_gemv_add){.s = p->v.x,
                                            .x = p->v.kept[O],
                                            .w = p->matrix[ATTENTION_O].data,
                                            .N = C,
                                            .K = (int)output_size(p->b)}));
}

const struct block_ops attention_ops = {
    .arrays = ARRAYS,
    .dropped = RECOMPUTE_BLOCK,
    .array_bytes = array_bytes,
    .carve_backward = carve_backward,
    .forward = forward,
    .compute_arrays = compute_arrays,
    .backward = backward,
    .decoder_step = step,
};
