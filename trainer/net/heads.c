/* SPDX-License-Identifier: Apache-2.0
 *
 * heads.c: see heads.h. This file norms, maps and rotates.
 */
#include "net/heads.h"

#include "base/check.h"
#include "net/norm.h"
#include "net/tables.h"
#include "nojit_ops.h"

static bool is_normed_alone(const struct block *b)
{
    return block_has(b, FEATURE_QK_NORM);
}

static bool is_normed_by_row(const struct block *b)
{
    return block_has(b, FEATURE_QK_NORM_ROW);
}

static bool is_gain_last(const struct block *b)
{
    return block_has(b, FEATURE_QK_GAIN_LAST);
}

bool heads_are_normed(const struct block *b)
{
    return is_normed_alone(b) || is_normed_by_row(b);
}

bool heads_are_mapped(const struct block_pass *p)
{
    const bool mapped = arch_maps_heads(&p->n->c.arch, p->b);
    CHECK(!mapped || (!is_normed_alone(p->b) && !block_has(p->b, FEATURE_GATE)));
    return mapped;
}

void *heads_raw(const struct block_pass *p)
{
    if (heads_are_normed(p->b) && p->v.kept[RAW])
        return p->v.kept[RAW];
    return heads_are_mapped(p) ? p->a->heads : p->v.kept[QKV];
}

float heads_amplitude(const struct block_pass *p)
{
    return rope_amplitude(&p->n->c.arch.rope[p->b->rope]);
}

static void *gradient(const struct block_pass *p)
{
    return heads_are_mapped(p) ? p->a->heads : p->a->dqkv;
}

const void *heads_gradient(const struct block_pass *p)
{
    return gradient(p);
}

/* ---- layouts ---- */

/* Rows to map: queries and K key and value heads, with the bias that is added to them, and partial sums of what becomes
 * of them; NULL: neither. */
struct mapping {
    void *y;
    const void *x;
    int K;
    const void *bias;
    float *part;
};

/* Map rows of heads to attention's layout, or back. */
static void map(struct work *r, const struct block_pass *p, const struct mapping *m, bool back)
{
    const struct block *b = p->b;
    const int N = acts_rows(p->a), own = b->head_dim, padded = block_padded_dim(b);
    const int32_t *from = back ? tables_map_back(p->n, b) : tables_map_to(p->n, b);
    OP(r, nj_heads_map(r->s, p->n->T,
                       &(struct nj_heads_map){.y = m->y,
                                              .part = m->part,
                                              .x = m->x,
                                              .bias = m->bias,
                                              .map = from,
                                              .map_v = from,
                                              .N = N,
                                              .H = b->heads,
                                              .K = m->K,
                                              .D_in = back ? padded : own,
                                              .D_out = back ? own : padded,
                                              .P = partial_sums(N)}));
}

static bool is_gated(const struct block_pass *p)
{
    return block_has(p->b, FEATURE_GATE);
}

const void *heads_output(struct work *r, const struct block_pass *p)
{
    if (is_gated(p))
        OP(r, nj_gate_fwd(r->s, p->n->T,
                          &(struct nj_gate_fwd){.y = p->a->heads,
                                                .o = p->v.kept[O],
                                                .g = p->v.kept[GATES],
                                                .N = acts_rows(p->a),
                                                .C = p->b->heads * block_padded_dim(p->b),
                                                .D = 1}));
    if (!heads_are_mapped(p))
        return is_gated(p) ? p->a->heads : p->v.kept[O];
    map(r, p, &(struct mapping){.y = p->a->heads, .x = p->v.kept[O]}, true);
    return p->a->heads;
}

void *heads_output_gradient(const struct block_pass *p)
{
    return heads_are_mapped(p) ? p->a->dqkv : p->a->dout;
}

void heads_output_bwd(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    if (heads_are_mapped(p))
        map(r, p, &(struct mapping){.y = a->dout, .x = a->dqkv}, false);
    if (is_gated(p))
        OP(r, nj_gate_bwd(r->s, p->n->T,
                          &(struct nj_gate_bwd){.dout = a->dout,
                                                .dg = a->heads,
                                                .dy = a->dout,
                                                .o = p->v.kept[O],
                                                .g = p->v.kept[GATES],
                                                .N = acts_rows(a),
                                                .C = p->b->heads * block_padded_dim(p->b),
                                                .D = 1}));
}

/* ---- forward ---- */

static void norm_and_rotate(struct work *r, const struct block_pass *p)
{
    const struct block *b = p->b;
    OP(r, nj_qknorm_rope_fwd(r->s, p->n->T,
                             &(struct nj_qknorm_rope_fwd){.y = p->v.kept[QKV],
                                                          .rstd = p->v.kept[RSTD_QK],
                                                          .x = heads_raw(p),
                                                          .wq = block_weight(p, ROLE_Q_NORM),
                                                          .wk = block_weight(p, ROLE_K_NORM),
                                                          .inv_freq = tables_frequencies(p->n, b),
                                                          .pos = p->rows->pos,
                                                          .N = acts_rows(p->a),
                                                          .H = b->heads,
                                                          .K = b->kv_heads,
                                                          .D = block_padded_dim(b),
                                                          .eps = p->n->c.rms_eps,
                                                          .amplitude = heads_amplitude(p),
                                                          .offset = b->gain_offset,
                                                          .gain_last = is_gain_last(b)}));
}

/* Norm rows in the layout of products. */
static void norm_rows(struct work *r, const struct block_pass *p)
{
    const struct block *b = p->b;
    CHECK(b->gain_offset == 0);
    OP(r, nj_qknorm_row_fwd(
              r->s, p->n->T,
              &(struct nj_qknorm_row_fwd){.y = heads_are_mapped(p) ? p->a->heads : p->v.kept[QKV],
                                          .rstd = p->v.kept[RSTD_QK],
                                          .x = heads_raw(p),
                                          .wq = block_weight(p, ROLE_Q_NORM),
                                          .wk = block_weight(p, ROLE_K_NORM),
                                          .N = acts_rows(p->a),
                                          .H = b->heads,
                                          .K = b->kv_heads,
                                          .D = b->head_dim,
                                          .eps = p->n->c.rms_eps}));
}

static void rotate(struct work *r, const struct block_pass *p, const void *bias)
{
    const struct block *b = p->b;
    OP(r, nj_rope_fwd(r->s, p->n->T,
                      &(struct nj_rope_fwd){.qkv = p->v.kept[QKV],
                                            .bias = bias,
                                            .inv_freq = tables_frequencies(p->n, b),
                                            .pos = p->rows->pos,
                                            .N = acts_rows(p->a),
                                            .H = b->heads,
                                            .K = b->kv_heads,
                                            .D = block_padded_dim(b),
                                            .amplitude = heads_amplitude(p)}));
}

const void *heads_map_in(struct work *r, const struct block_pass *p, const void *bias)
{
    if (!heads_are_mapped(p))
        return bias;
    if (is_normed_by_row(p->b))
        norm_rows(r, p);
    map(r, p,
        &(struct mapping){.y = p->v.kept[QKV], .x = p->a->heads, .K = p->b->kv_heads, .bias = bias},
        false);
    return NULL;
}

void heads_fwd(struct work *r, const struct block_pass *p, const void *bias)
{
    if (is_normed_alone(p->b)) {
        norm_and_rotate(r, p);
        return;
    }
    if (is_normed_by_row(p->b) && !heads_are_mapped(p))
        norm_rows(r, p);
    rotate(r, p, bias);
}

/* ---- backward ---- */

static void norm_and_rotate_bwd(struct work *r, const struct block_pass *p)
{
    const struct net *n = p->n;
    const struct acts *a = p->a;
    const struct block *b = p->b;
    const int N = acts_rows(a), P = partial_sums(N), D = block_padded_dim(b);
    const bool gains = !block_has(b, FEATURE_QK_NO_GAIN);
    float *part_k = a->part + (size_t)P * (size_t)D;
    OP(r, nj_qknorm_rope_bwd(r->s, n->T,
                             &(struct nj_qknorm_rope_bwd){.dqkv = a->dqkv,
                                                          .dwq_part = gains ? a->part : NULL,
                                                          .dwk_part = gains ? part_k : NULL,
                                                          .x = heads_raw(p),
                                                          .rstd = p->v.kept[RSTD_QK],
                                                          .wq = block_weight(p, ROLE_Q_NORM),
                                                          .wk = block_weight(p, ROLE_K_NORM),
                                                          .inv_freq = tables_frequencies(n, b),
                                                          .pos = p->rows->pos,
                                                          .N = N,
                                                          .H = b->heads,
                                                          .K = b->kv_heads,
                                                          .D = D,
                                                          .P = P,
                                                          .amplitude = heads_amplitude(p),
                                                          .offset = b->gain_offset,
                                                          .gain_last = is_gain_last(b)}));
    norm_add_columns(r, n, p->first[ROLE_Q_NORM], a->part, N, D);
    norm_add_columns(r, n, p->first[ROLE_K_NORM], part_k, N, D);
}

static void norm_rows_bwd(struct work *r, const struct block_pass *p)
{
    const struct net *n = p->n;
    const struct acts *a = p->a;
    const struct block *b = p->b;
    const int N = acts_rows(a), P = partial_sums(N), D = b->head_dim;
    const int q = b->heads * D, k = b->kv_heads * D;
    float *part_k = a->part + (size_t)P * (size_t)q;
    OP(r, nj_qknorm_row_bwd(r->s, n->T,
                            &(struct nj_qknorm_row_bwd){.dqkv = gradient(p),
                                                        .dwq_part = a->part,
                                                        .dwk_part = part_k,
                                                        .x = heads_raw(p),
                                                        .rstd = p->v.kept[RSTD_QK],
                                                        .wq = block_weight(p, ROLE_Q_NORM),
                                                        .wk = block_weight(p, ROLE_K_NORM),
                                                        .N = N,
                                                        .H = b->heads,
                                                        .K = b->kv_heads,
                                                        .D = D,
                                                        .P = P}));
    norm_add_columns(r, n, p->first[ROLE_Q_NORM], a->part, N, q);
    norm_add_columns(r, n, p->first[ROLE_K_NORM], part_k, N, k);
}

/* Rotate back; part: partial sums of the gradient of a bias, or NULL. */
static void rotate_bwd(struct work *r, const struct block_pass *p, float *part)
{
    const struct block *b = p->b;
    const int N = acts_rows(p->a);
    OP(r, nj_rope_bwd(r->s, p->n->T,
                      &(struct nj_rope_bwd){.dqkv = p->a->dqkv,
                                            .dbias_part = part,
                                            .inv_freq = tables_frequencies(p->n, b),
                                            .pos = p->rows->pos,
                                            .N = N,
                                            .H = b->heads,
                                            .K = b->kv_heads,
                                            .D = block_padded_dim(b),
                                            .P = partial_sums(N),
                                            .amplitude = heads_amplitude(p)}));
}

void heads_bwd(struct work *r, const struct block_pass *p)
{
    const struct acts *a = p->a;
    const int64_t bias = p->first[ROLE_Q_BIAS];
    const bool mapped = heads_are_mapped(p);
    float *part = bias < 0 || !p->n->grad ? NULL : a->part;
    if (is_normed_alone(p->b)) {
        norm_and_rotate_bwd(r, p);
        return;
    }
    rotate_bwd(r, p, mapped ? NULL : part);
    if (mapped)
        map(r, p, &(struct mapping){.y = a->heads, .x = a->dqkv, .K = p->b->kv_heads, .part = part},
            true);
    if (is_normed_by_row(p->b))
        norm_rows_bwd(r, p);
    if (part)
        norm_add_columns(r, p->n, bias, part, acts_rows(a), (int)block_qkv_size(p->b));
}
