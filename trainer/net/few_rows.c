/* SPDX-License-Identifier: Apache-2.0
 *
 * few_rows.c: see few_rows.h. With few rows the time of a step depends on the number of its kernels, so each does
 * more than in forward.c: norm and activation are computed with the adjacent product, and products are added to the
 * residual stream, which is one buffer throughout.
 */
#include "net/few_rows.h"

#include "net/forward.h"
#include "net/logits.h"
#include "net/teacher_shard.h"
#include "nojit_ops.h"

/* Largest number of rows; number of rows from which tensor cores multiply; largest hidden size of gemv_norm, and
 * with tensor cores the largest at which it was faster than cuBLASLt. */
enum { MOST_ROWS = 16, FEWEST_MMA = 8, WIDEST = 8192, WIDEST_MMA = 1024 };

static bool has_step(const struct work *r, const struct block_pass *p)
{
    const struct block_ops *ops = block_ops[p->b->kind];
    const unsigned norms = p->b->features & (NORMED_BEFORE | NORMED_AFTER);
    return norms == NORMED_BEFORE && ops->decoder_step && (!ops->has_step || ops->has_step(r, p));
}

static bool blocks_have_steps(const struct work *r, const struct net *n)
{
    for (int l = 0; l < n->c.layers; l++) {
        const struct layer *layer = arch_layer(&n->c.arch, l);
        for (int i = 0; i < layer->blocks; i++) {
            const struct block_pass p = {
                .n = n, .b = &layer->block[i], .layer = l, .matrix = net_block_matrices(n, l, i)};
            if (!has_step(r, &p))
                return false;
        }
    }
    return true;
}

/* Return whether all matrices but those of experts are plain T without adapters. Blocks of experts decide in
 * has_step(). */
static bool is_plain(const struct net *n)
{
    for (int i = 0; i < n->matrices; i++) {
        const struct matrix *m = &n->matrix[i];
        if (m->adapters > 0 || (m->experts == 0 && m->format != &matrix_plain))
            return false;
    }
    return true;
}

bool few_rows_fit(const struct work *r, const struct net *n, int rows)
{
    const struct model_config *c = &n->c;
    const bool plain = is_plain(n) && blocks_have_steps(r, n) && !c->embed_normed;
    const bool few = rows <= MOST_ROWS && (rows & (rows - 1)) == 0;
    const int widest = rows < FEWEST_MMA ? WIDEST : WIDEST_MMA;
    return plain && few && n->T == NJ_LP && c->hidden_size % 8 == 0 && c->hidden_size <= widest &&
           nj_kernel_available(r->ctx, nj_kernel_find("gemv_norm.lp.m1")); /* absent with Vulkan */
}

void few_rows_step(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                   int vocab, int ld, void *logits)
{
    const struct model_config *c = &n->c;
    const int M = acts_rows(a), C = c->hidden_size;
    const struct block_acts first = acts_block(n, a, 0, 0);
    void *stream = first.x;
    OP(r, nj_row_gather(r->s, n->T,
                        &(struct nj_row_gather){.dst = stream,
                                                .src = n->embedding->data,
                                                .index = rows->ids,
                                                .M = M,
                                                .R = c->vocab_size,
                                                .C = C,
                                                .scale = net_embedding_scale(n)}));
    teacher_shard_begin(r, n);
    for (int l = 0; l < c->layers; l++) {
        teacher_shard_ahead(r, n, l);
        for (int i = 0; i < arch_layer(&c->arch, l)->blocks; i++) {
            const struct block_pass p = net_block(n, a, rows, l, i);
            block_ops[p.b->kind]->decoder_step(r, &p);
        }
        teacher_shard_arrive(r, n);
    }
    const void *gain = net_weight(n, n->p.norm);
    /* More rows are bound by the weights of the head, which a GEMM reads as fast. gemv_norm has no factor. */
    if (M < FEWEST_MMA && matrix_scale(n->head) == 1) {
        OP(r, nj_gemv_norm(r->s, n->T, M,
                           &(struct nj_gemv_norm){.y = logits,
                                                  .x = stream,
                                                  .g = gain,
                                                  .w = n->head->data,
                                                  .N = vocab,
                                                  .C = C,
                                                  .ld = ld,
                                                  .eps = c->rms_eps,
                                                  .offset = c->gain_offset}));
        net_cap_logits(r, n, M, vocab, ld, logits);
        return;
    }
    OP(r, nj_rmsnorm_fwd(r->s, n->T,
                         &(struct nj_rmsnorm_fwd){.y = a->y,
                                                  .rstd = first.rstd,
                                                  .x = stream,
                                                  .w = gain,
                                                  .N = M,
                                                  .C = C,
                                                  .eps = c->rms_eps,
                                                  .offset = c->gain_offset}));
    net_logits(r, n, NULL, a->y, M, vocab, ld, logits);
}
