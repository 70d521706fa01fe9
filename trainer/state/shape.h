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
    int rows;          /* rows of a micro-batch: N = B S */
    int chunk, chunks; /* rows of logits at a time; number of chunks that hold N rows */
    int padded;        /* chunk chunks */
    int vocab;         /* tokens that student and teacher share: the columns of the logits */
    int ld;            /* elements from one row of logits to the next */
    bool train;
    unsigned arrays;      /* uses that the arrays of a micro-batch have (enum array_use) */
    int ranks, micro;     /* number of ranks of a step, and of micro-batches of each */
    int rank;             /* number of this process, or RANKS_VIRTUAL */
    int slots;            /* number of micro-batches of a step that are computed here */
    struct pieces pieces; /* pieces of the trained parameters */
    bool overlapped;      /* groups of layers are exchanged during the backward pass */
};

void plan_shape(const struct net *student, const struct model_config *teacher,
                const struct train_options *o, struct shape *out);
/* Return the number of ranks of a step, whether each is a process, or the number of micro-batches of each. */
int shape_ranks(const struct train_options *o);
bool shape_ranks_are_processes(const struct train_options *o);
int shape_micro(const struct train_options *o);
/* Return the bytes of gradients that hold nothing yet while the head runs: those of the layers, if a rank has one
 * micro-batch. */
size_t shape_idle_gradients(const struct net *student, const struct train_options *o);

#endif
