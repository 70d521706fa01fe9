/* SPDX-License-Identifier: Apache-2.0
 *
 * few_rows.c: see few_rows.h. With few rows the time of a step depends on the number of its kernels, so each does
 * more than in forward.c: norm and activation are computed with the adjacent product, and products are added to the
 * residual stream, which is s1 throughout.
 */
#include "net/few_rows.h"

#include "net/activation.h"
#include "net/forward.h"
#include "net/logits.h"
#include "net/teacher_shard.h"
#include "nojit_ops.h"

/* Largest number of rows; number of rows from which tensor cores multiply; largest hidden size of gemv_norm, and
 * with tensor cores the largest at which it was faster than cuBLASLt. */
enum { MOST_ROWS = 16, FEWEST_MMA = 8, WIDEST = 8192, WIDEST_MMA = 1024 };

bool few_rows_fit(const struct work *r, const struct net *n, int rows)
{
    const struct model_config *c = &n->c;
    const bool plain = net_is_plain(n) && activation_is_silu(n);
    const bool few = rows <= MOST_ROWS && (rows & (rows - 1)) == 0;
    const int widest = rows < FEWEST_MMA ? WIDEST : WIDEST_MMA;
    return plain && few && n->T == NJ_LP && c->hidden_size % 8 == 0 &&
           c->intermediate_size % 8 == 0 && c->hidden_size <= widest &&
           nj_kernel_available(r->ctx, nj_kernel_find("gemv_norm.lp.m1")); /* absent with Vulkan */
}

static const void *matrix(const struct net *n, int layer, enum product which)
{
    return net_layer_matrix(n, layer, which)->data;
}

static void few_rows_layer(struct work *r, const struct net *n, struct acts *a,
                           const struct rows *rows, int layer)
{
    const struct model_config *c = &n->c;
    const struct layer_params *w = &n->p.layer[layer];
    const struct layer_acts v = acts_layer(n, a, layer);
    const int M = acts_rows(a), C = c->hidden_size, I = c->intermediate_size, QKV = net_qkv(c);
    OP(r, nj_gemv_norm(r->s, n->T, M,
                       &(struct nj_gemv_norm){.y = v.raw,
                                              .x = v.s1,
                                              .g = net_weight(n, w->ln1),
                                              .w = matrix(n, layer, PRODUCT_QKV),
                                              .b = net_weight(n, w->bqkv),
                                              .N = QKV,
                                              .C = C,
                                              .ld = QKV,
                                              .eps = c->rms_eps}));
    net_attention(r, n, a, rows, layer, NULL); /* gemv_norm has added the bias */
    OP(r, nj_gemv_add(r->s, n->T, M,
                      &(struct nj_gemv_add){.s = v.s1,
                                            .x = v.o,
                                            .w = matrix(n, layer, PRODUCT_O),
                                            .N = C,
                                            .K = c->heads * c->head_dim}));
    OP(r, nj_gemv_norm_swiglu(r->s, n->T, M,
                              &(struct nj_gemv_norm_swiglu){.a = a->act,
                                                            .x = v.s1,
                                                            .g = net_weight(n, w->ln2),
                                                            .w = matrix(n, layer, PRODUCT_GATE_UP),
                                                            .I = I,
                                                            .C = C,
                                                            .eps = c->rms_eps}));
    OP(r, nj_gemv_add(
              r->s, n->T, M,
              &(struct nj_gemv_add){
                  .s = v.s1, .x = a->act, .w = matrix(n, layer, PRODUCT_DOWN), .N = C, .K = I}));
}

void few_rows_step(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                   int vocab, int ld, void *logits)
{
    const struct model_config *c = &n->c;
    const int M = acts_rows(a), C = c->hidden_size;
    const struct layer_acts first = acts_layer(n, a, 0);
    void *stream = first.s1;
    OP(r, nj_row_gather(r->s, n->T,
                        &(struct nj_row_gather){.dst = stream,
                                                .src = n->embedding->data,
                                                .index = rows->ids,
                                                .M = M,
                                                .R = c->vocab_size,
                                                .C = C}));
    teacher_shard_begin(r, n);
    for (int layer = 0; layer < c->layers; layer++) {
        teacher_shard_ahead(r, n, layer);
        few_rows_layer(r, n, a, rows, layer);
        teacher_shard_arrive(r, n);
    }
    const void *gain = net_weight(n, n->p.norm);
    if (M <
        /* More rows are bound by the weights of the head, which a GEMM reads as fast. */
        FEWEST_MMA) {
        OP(r, nj_gemv_norm(r->s, n->T, M,
                           &(struct nj_gemv_norm){.y = logits,
                                                  .x = stream,
                                                  .g = gain,
                                                  .w = n->head->data,
                                                  .N = vocab,
                                                  .C = C,
                                                  .ld = ld,
                                                  .eps = c->rms_eps}));
        return;
    }
    OP(r, nj_rmsnorm_fwd(r->s, n->T,
                         &(struct nj_rmsnorm_fwd){.y = a->y,
                                                  .rstd = first.rstd1,
                                                  .x = stream,
                                                  .w = gain,
                                                  .N = M,
                                                  .C = C,
                                                  .eps = c->rms_eps}));
    net_logits(r, n, NULL, a->y, M, vocab, ld, logits);
}
