/* SPDX-License-Identifier: Apache-2.0
 *
 * convolution.h: the causal convolution in a block, which stays within a document. A decoder keeps the last rows of its
 * input. Only conv.c and delta.c call this.
 */
#ifndef NOJIT_TRAINER_CONVOLUTION_H
#define NOJIT_TRAINER_CONVOLUTION_H

#include "net/block.h"

/* y = gate_out * act(convolution of gate_in * x), for a block's rows; x and gates are columns of rows of `ld`. */
struct convolution {
    enum tensor_role taps;
    const void *x, *gate_in, *gate_out; /* gates: NULL if there are none */
    void *y;
    int channels, ld, act;
};

/* The gradient of y, and where those of x and of gates go, which have the layout of x. */
struct convolution_gradients {
    const void *dy;
    void *dx, *dgate_in, *dgate_out;
};

/* Compute y. */
void convolution_fwd(struct work *r, const struct block_pass *p, const struct convolution *c);
/* Compute y for the next row of each sequence, from the rows in the cache, which this one joins. */
void convolution_step(struct work *r, const struct block_pass *p, const struct convolution *c);
/* Store the last rows of the prompts of a pass in the cache. */
void convolution_store(struct work *r, const struct block_pass *p, const struct convolution *c);
/* Compute the gradients of x and gates, and add that of the taps. */
void convolution_bwd(struct work *r, const struct block_pass *p, const struct convolution *c,
                     const struct convolution_gradients *g);

#endif
