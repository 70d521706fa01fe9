/* SPDX-License-Identifier: Apache-2.0
 *
 * pieces.h: the trained parameters in pieces, which ranks exchange one at a time: the embedding, groups of layers, and
 * the rest after them (an untied head, norms and biases). The gradients of a group are finished while the backward pass
 * still computes the layers below it. Each rank updates a shard of every piece.
 */
#ifndef NOJIT_TRAINER_PIECES_H
#define NOJIT_TRAINER_PIECES_H

#include "net/params.h"

enum { PIECE_GROUPS = 8, PIECES_MOST = PIECE_GROUPS + 2 };
/* Bounds of the pieces. A piece consists of whole shards, so it begins at or slightly after the first element of its
 * group; the elements between belong to the piece before, which is finished later. The last group ends slightly before
 * its end for the same reason. A piece may be empty. */
struct pieces {
    int ranks, count;
    /* Number of groups of layers, which are pieces 1 to `groups`. If it is 0, there is one piece. */
    int groups;
    int layer[PIECE_GROUPS + 1]; /* first layer of each group, and the end of the last one */
    int64_t first[PIECES_MOST + 1];
};

/* Return the number of elements of a shard, which is equal for all ranks although the last shards may have fewer
 * elements, or none; pieces_shards() returns the number in the shards of all ranks. */
int64_t pieces_shard(int64_t count, int ranks);
int64_t pieces_shards(int64_t count, int ranks);
/* Cut the parameters into pieces. With one rank, or with layers 0, as for adapters, there is one piece. */
void pieces_cut(const struct params *p, int layers, int ranks, struct pieces *out);
/* Return the number of elements of a piece; pieces_largest_group() returns that of the largest group of layers. */
int64_t pieces_elements(const struct pieces *s, int piece);
int64_t pieces_largest_group(const struct pieces *s);
/* Return whether the gradients of a piece are exchanged during the backward pass: a group, or the piece after the
 * layers if it is no larger than the largest group, as with a small head. */
bool pieces_overlapped(const struct pieces *s, int piece);
int64_t pieces_largest_other(const struct pieces *s);

/* Return the i-th piece that is updated and sent to the other ranks. The piece after the layers is first, because every
 * layer reads norms and biases; the others follow in the order of the forward pass. */
int pieces_updated(const struct pieces *s, int i);

/* Number of partial sums of squares of one shard, fixed so that results do not depend on the machine; pieces_sumsq()
 * returns the number for all shards of a rank. */
enum { SUMSQ_PARTS = 1056 };
int pieces_sumsq(const struct pieces *s);

/* Return the bytes that a rank receives from the others in a step: gradients of its shards (`wire` bytes per element),
 * updated weights (`weight` bytes per element), and partial sums of squares. */
size_t pieces_received(const struct pieces *s, size_t wire, size_t weight);

/* The part of a piece that a rank updates. */
struct shard {
    int64_t first; /* first element in the arenas */
    /* First element in the array that holds only this process's shards, one after another. */
    int64_t kept;
    int64_t each;    /* elements per shard */
    int64_t count;   /* elements that exist in this one */
    int64_t decayed; /* leading elements that weight decay applies to */
};
struct shard pieces_held(const struct pieces *s, const struct params *p, int piece, int rank);

#endif
