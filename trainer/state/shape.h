/* SPDX-License-Identifier: Apache-2.0
 *
 * shape.h: the sizes of a run that follow from its models and options.
 */
#ifndef NOJIT_TRAINER_SHAPE_H
#define NOJIT_TRAINER_SHAPE_H

#include "net/net.h"
#include "state/pieces.h"
#include "state/train_options.h"

struct shape {
    int rows;          /* N = B S */
    int chunk, chunks; /* rows of logits at a time; how many of them hold N rows */
    int padded;        /* chunk chunks */
    int vocab;         /* tokens that student and teacher share: the columns of the logits */
    int ld;            /* elements from one row of logits to the next */
    bool train;
    unsigned arrays;      /* uses that the arrays of a micro-batch have (enum array_use) */
    int ranks, micro;     /* ranks of a step, micro-batches of each */
    int rank;             /* this process, or RANKS_HERE */
    int slots;            /* micro-batches of a step that are computed here */
    struct pieces pieces; /* of what is trained */
    bool early;           /* groups of layers are exchanged during the backward pass */
};

void plan_shape(const struct net *student, const struct model_config *teacher,
                const struct train_options *o, struct shape *out);
/* Return the ranks of a step, whether each is a process, and the micro-batches of each. */
int shape_ranks(const struct train_options *o);
bool shape_ranks_apart(const struct train_options *o);
int shape_micro(const struct train_options *o);
/* Return the bytes of gradients that hold nothing yet while the head runs: those of the layers, where a rank has one
 * micro-batch. */
size_t shape_idle_gradients(const struct net *student, const struct train_options *o);

#endif
