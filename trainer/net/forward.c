/* SPDX-License-Identifier: Apache-2.0
 *
 * forward.c: the forward pass of one transformer. The residual stream passes from block to block through add_rmsnorm,
 * which adds a branch and normalizes in one kernel; a->y holds the normed rows that the next product reads. If that
 * GEMM has FP8 operands, norm and activation write its operand to a->x instead (product_x_made); the final norm is
 * always T. A norm after a block is part of that kernel too, and a block without a norm before it reads the stream.
 */
#include "net/forward.h"

#include "net/experts.h"
#include "net/layer_gemm.h"
#include "net/norm.h"
#include "net/teacher_shard.h"

struct block_pass net_block(const struct net *n, struct acts *a, const struct rows *rows, int layer,
                            int block)
{
    return (struct block_pass){.n = n,
                               .a = a,
                               .rows = rows,
                               .b = &arch_layer(&n->c.arch, layer)->block[block],
                               .layer = layer,
                               .matrix = net_block_matrices(n, layer, block),
                               .first = n->p.layer[layer],
                               .v = acts_block(n, a, layer, block)};
}

static int blocks_of(const struct net *n, int layer)
{
    return arch_layer(&n->c.arch, layer)->blocks;
}

/* Compute a block, add its output to the stream, and norm the sum for the block after it or for the head. */
static void forward_block(struct work *r, const struct block_pass *p, int block)
{
    const struct net *n = p->n;
    const bool inside = block + 1 < blocks_of(n, p->layer);
    const int layer = inside ? p->layer : p->layer + 1;
    block_ops[p->b->kind]->forward(r, p);
    if (layer == n->c.layers) {
        norm_add_fwd(r, p, NULL);
        return;
    }
    const struct block_pass next = net_block(n, p->a, p->rows, layer, inside ? block + 1 : 0);
    norm_add_fwd(r, p, &next);
}

static bool is_dropped(const struct net *n, int layer, int block)
{
    const struct layer *l = arch_layer(&n->c.arch, layer);
    return block >= 0 && block < l->blocks &&
           n->recompute >= block_ops[l->block[block].kind]->dropped;
}

/* Compute what the backward pass reads of a block whose output is known, or is not in the stream of its layer. */
static void last_again(struct work *r, const struct block_pass *p)
{
    const struct block_ops *ops = block_ops[p->b->kind];
    if (p->n->recompute == RECOMPUTE_BLOCK && block_has(p->b, FEATURE_NORM_AFTER)) {
        ops->forward(r, p);
        norm_after_fwd(r, p);
    } else {
        ops->compute_arrays(r, p);
    }
}

void net_forward_again(struct work *r, const struct net *n, struct acts *a, const struct rows *rows,
                       int layer)
{
    for (int i = 0; i < blocks_of(n, layer); i++) {
        const struct block_pass p = net_block(n, a, rows, layer, i);
        if (!is_dropped(n, layer, i))
            continue;
        if (!is_dropped(n, layer, i - 1))
            norm_fwd(r, &p, NULL);
        if (is_dropped(n, layer, i + 1))
            forward_block(r, &p, i);
        else
            last_again(r, &p);
    }
}

static void forward_layer(struct work *r, const struct net *n, struct acts *a,
                          const struct rows *rows, int layer)
{
    for (int i = 0; i < blocks_of(n, layer); i++) {
        const struct block_pass p = net_block(n, a, rows, layer, i);
        forward_block(r, &p, i);
    }
}

void net_gather_embedding(struct work *r, const struct net *n, const struct acts *a,
                          const struct rows *rows, void *y)
{
    n->embedding->format->gather(r, n->embedding, y, rows->ids, acts_rows(a),
                                 net_embedding_scale(n));
}

void net_forward_embedding(struct work *r, const struct net *n, struct acts *a,
                           const struct rows *rows)
{
    const struct block_pass first = net_block(n, a, rows, 0, 0);
    net_gather_embedding(r, n, a, rows, n->c.embed_normed ? a->y : first.v.x);
    if (n->c.embed_normed)
        norm_embedding_fwd(r, n, a, first.v.x, first.v.rstd);
    norm_fwd(r, &first, NULL);
    experts_begin(r, n, a);
    teacher_shard_begin(r, n);
}

void net_forward_layers(struct work *r, const struct net *n, struct acts *a,
                        const struct rows *rows, int from, int to)
{
    for (int l = from; l < to; l++) {
        teacher_shard_ahead(r, n, l);
        forward_layer(r, n, a, rows, l);
        teacher_shard_arrive(r, n);
    }
}

void net_forward(struct work *r, const struct net *n, struct acts *a, const struct rows *rows)
{
    net_forward_embedding(r, n, a, rows);
    net_forward_layers(r, n, a, rows, 0, n->c.layers);
}
