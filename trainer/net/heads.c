/* SPDX-License-Identifier: Apache-2.0
 *
 * heads.c: see heads.h. This file norms and rotates.
 */
#include "net/heads.h"

#include "net/norm.h"
#include "net/tables.h"
#include "nojit_ops.h"

bool heads_are_normed(const struct block *b)
{
    return block_has(b, FEATURE_QK_NORM);
}

void *heads_raw(const struct block_pass *p)
{
    return heads_are_normed(p->b) && p->v.kept[RAW] ? p->v.kept[RAW] : p->v.kept[QKV];
}

float heads_amplitude(const struct block_pass *p)
{
    return rope_amplitude(&p->n->c.arch.rope[p->b->rope]);
}

void heads_fwd(struct work *r, const struct block_pass *p, const void *bias)
{
    const struct block *b = p->b;
    const int N = acts_rows(p->a), last = block_has(b, FEATURE_QK_GAIN_LAST);
    if (heads_are_normed(b))
        OP(r, nj_qknorm_rope_fwd(
                  r->s, p->n->T,
                  &(struct nj_qknorm_rope_fwd){.y = p->v.kept[QKV],
                                               .rstd = p->v.kept[RSTD_QK],
                                               .x = heads_raw(p),
                                               .wq = block_weight(p, ROLE_Q_NORM),
                                               .wk = block_weight(p, ROLE_K_NORM),
                                               .inv_freq = tables_frequencies(p->n, p->b),
                                               .pos = p->rows->pos,
                                               .N = N,
                                               .H = b->heads,
                                               .K = b->kv_heads,
                                               .D = block_padded_dim(b),
                                               .eps = p->n->c.rms_eps,
                                               .amplitude = heads_amplitude(p),
                                               .offset = b->gain_offset,
                                               .gain_last = last}));
    else
        OP(r, nj_rope_fwd(r->s, p->n->T,
                          &(struct nj_rope_fwd){.qkv = p->v.kept[QKV],
                                                .bias = bias,
                                                .inv_freq = tables_frequencies(p->n, p->b),
                                                .pos = p->rows->pos,
                                                .N = N,
                                                .H = b->heads,
                                                .K = b->kv_heads,
                                                .D = block_padded_dim(b),
                                                .amplitude = heads_amplitude(p)}));
}

void heads_bwd(struct work *r, const struct block_pass *p)
{
    const struct net *n = p->n;
    const struct acts *a = p->a;
    const struct block *b = p->b;
    const int N = acts_rows(a), P = partial_sums(N), D = block_padded_dim(b);
    const int64_t bias = p->first[ROLE_Q_BIAS];
    if (heads_are_normed(b)) {
        float *part_k = a->part + (size_t)P * (size_t)D;
        OP(r, nj_qknorm_rope_bwd(
                  r->s, n->T,
                  &(struct nj_qknorm_rope_bwd){.dqkv = a->dqkv,
                                               .dwq_part = a->part,
                                               .dwk_part = part_k,
                                               .x = heads_raw(p),
                                               .rstd = p->v.kept[RSTD_QK],
                                               .wq = block_weight(p, ROLE_Q_NORM),
                                               .wk = block_weight(p, ROLE_K_NORM),
                                               .inv_freq = tables_frequencies(p->n, p->b),
                                               .pos = p->rows->pos,
                                               .N = N,
                                               .H = b->heads,
                                               .K = b->kv_heads,
                                               .D = D,
                                               .P = P,
                                               .amplitude = heads_amplitude(p),
                                               .offset = b->gain_offset,
                                               .gain_last = block_has(b, FEATURE_QK_GAIN_LAST)}));
        norm_add_columns(r, n, p->first[ROLE_Q_NORM], a->part, N, D);
        norm_add_columns(r, n, p->first[ROLE_K_NORM], part_k, N, D);
        return;
    }
    float *part = bias < 0 || !n->grad ? NULL : a->part;
    OP(r, nj_rope_bwd(r->s, n->T,
                      &(struct nj_rope_bwd){.dqkv = a->dqkv,
                                            .dbias_part = part,
                                            .inv_freq = tables_frequencies(p->n, p->b),
                                            .pos = p->rows->pos,
                                            .N = N,
                                            .H = b->heads,
                                            .K = b->kv_heads,
                                            .D = D,
                                            .P = P,
                                            .amplitude = heads_amplitude(p)}));
    if (part)
        norm_add_columns(r, n, bias, part, N, (int)block_qkv_size(b));
}
