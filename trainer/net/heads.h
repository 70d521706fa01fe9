/* SPDX-License-Identifier: Apache-2.0
 *
 * heads.h: the heads of an attention block, between its products. heads.c brings queries and keys into the form that
 * attention reads, and heads_cache.c lets a decoder attend to its cache; only attention.c calls them.
 */
#ifndef NOJIT_TRAINER_HEADS_H
#define NOJIT_TRAINER_HEADS_H

#include "net/block.h"

/* Arrays that the backward pass reads, of heads of block_padded_dim() elements. Without a norm of heads, and outside of
 * training, QKV is rotated in place and there is no RAW. */
enum {
    QKV, /* [N, (H + 2K) D] q, k, v, rotated; in a decoder's step without a norm of heads, not yet rotated */
    RAW,     /* [N, (H + 2K) D] q, k, v before norm and rotation */
    RSTD_QK, /* [N, H + K] 1 / root mean square of the heads of q and k */
    O,       /* [N, H D] output of attention */
    LSE,     /* [B, H, S] log of the sum of exponentials of the scores */
    GATES,   /* [N, H D] product of the gate, whose sigmoid multiplies O */
    HEADS_ARRAYS
};
_Static_assert((int)HEADS_ARRAYS <= (int)BLOCK_ARRAYS_MOST,
               "struct acts has no place for an array");

/* Return whether queries and keys are normed. */
bool heads_are_normed(const struct block *b);
/* Return whether products have heads of another layout than attention. */
bool heads_are_mapped(const struct block_pass *p);
/* Return where the product of queries, keys and values belongs. */
void *heads_raw(const struct block_pass *p);
/* Bring the product into the layout of attention, if it has another one, with its bias. Return the bias that is still
 * to be added. */
const void *heads_map_in(struct work *r, const struct block_pass *p, const void *bias);
/* Return O as the output product reads it; and in the backward pass, where its gradient belongs. */
const void *heads_output(struct work *r, const struct block_pass *p);
void *heads_output_gradient(const struct block_pass *p);
/* Compute a->dout, the gradient of O, from that, and in a->heads the gradient of a gate's product. */
void heads_output_bwd(struct work *r, const struct block_pass *p);
/* Return the gradient of the product, after heads_bwd(). */
const void *heads_gradient(const struct block_pass *p);
/* Return the factor of rotated elements. */
float heads_amplitude(const struct block_pass *p);
/* Compute QKV = rotate(norm(raw + bias)); with a norm there is no bias. */
void heads_fwd(struct work *r, const struct block_pass *p, const void *bias);
/* Compute heads_gradient() from a->dqkv, the gradient of QKV, and the gradients of gains and biases. */
void heads_bwd(struct work *r, const struct block_pass *p);
/* Compute O of the next row of each sequence, which attends to those in the cache; its keys and values join them.
 * Without a norm of heads the rows of QKV are those of the product, and get the bias and the rotation here. */
void heads_attend_cached(struct work *r, const struct block_pass *p, const void *bias);
/* Store keys and values of a pass over prompts in the cache. */
void heads_store(struct work *r, const struct block_pass *p);

#endif
