/* SPDX-License-Identifier: Apache-2.0
 *
 * block.h: the kinds of blocks, a row of functions each. forward.c and backward.c go from block to block and compute
 * the residual stream and the norms between them. Only the file of a kind knows what happens inside its blocks.
 */
#ifndef NOJIT_TRAINER_BLOCK_H
#define NOJIT_TRAINER_BLOCK_H

#include "net/acts.h"

/* A block in a pass. */
struct block_pass {
    const struct net *n;
    struct acts *a;
    const struct rows *rows;
    const struct block *b;
    int layer;
    const struct matrix *matrix; /* its matrices, in the order of block_matrices[] */
    const int64_t *first;        /* [ROLE_COUNT] first elements of its tensors in the arenas */
    struct block_acts v;
};

struct block_ops {
    int arrays;             /* number of arrays that it computes for the backward pass */
    enum recompute dropped; /* the least setting with which they are computed again */
    /* Return the bytes of one of the arrays for that many rows; 0: such a block has none. */
    size_t (*array_bytes)(const struct net *n, const struct block *b, size_t rows,
                          enum acts_mode mode, int array);
    /* Carve scratch for all blocks of the kind in a net; NULL: there is none. */
    void (*carve)(const struct net *n, size_t rows, struct carve *m, struct acts *a);
    /* Carve more scratch for the backward pass. This and the next two are NULL if such a block only runs forward. */
    void (*carve_backward)(const struct net *n, size_t rows, struct carve *m, struct acts *a);
    /* Compute the output of the block, in v.output, from block_rows() or a->x; or the arrays alone. */
    void (*forward)(struct work *r, const struct block_pass *p);
    void (*compute_arrays)(struct work *r, const struct block_pass *p);
    /* Compute the gradient of block_rows() in a->branch from block_gradient(). */
    void (*backward)(struct work *r, const struct block_pass *p);
    /* Return whether decoder_step() can compute a block; of the pass, only net, block and matrices are set. NULL: it
     * always can. */
    bool (*has_step)(const struct work *r, const struct block_pass *p);
    /* Compute the block in a decoder's step of few rows, from the residual stream, and add the output to it. NULL: only
     * forward() computes it. */
    void (*decoder_step)(struct work *r, const struct block_pass *p);
};

extern const struct block_ops attention_ops, glu_ops, experts_ops, conv_ops, delta_ops;
extern const struct block_ops *const block_ops[BLOCK_KINDS];

/* Return the rows that a block computes from: its input, normed if it has a norm before it. */
static inline const void *block_rows(const struct block_pass *p)
{
    return block_has(p->b, FEATURE_NORM_BEFORE) ? p->a->y : (const char *)p->v.x;
}

/* Return the gradient of a block's output: that of the stream, or what the norm after it leaves in a->branch. */
static inline const void *block_gradient(const struct block_pass *p)
{
    return block_has(p->b, FEATURE_NORM_AFTER) ? p->a->branch : p->a->dx;
}

/* Return a parameter of the block, as T on the device; NULL: it has none. */
static inline const void *block_weight(const struct block_pass *p, enum tensor_role role)
{
    return net_weight(p->n, p->first[role]);
}

#endif
