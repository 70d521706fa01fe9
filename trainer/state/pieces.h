/* SPDX-License-Identifier: Apache-2.0
 *
 * pieces.h: what is trained, cut into pieces that ranks exchange one by one: the embedding, groups of layers, and what
 * comes behind them (a head of its own, norms and biases). The gradients of a group are finished while the backward
 * pass is still at the layers below it. A rank updates a shard of each piece.
 */
#ifndef NOJIT_TRAINER_PIECES_H
#define NOJIT_TRAINER_PIECES_H

#include "net/params.h"

enum { PIECE_GROUPS = 8, PIECES_MOST = PIECE_GROUPS + 2 };
/* Pieces are whole shards, so each is cut a little above the first element of its group, and what lies between belongs
 * to the piece below, which is finished later; the last group, below its end. A piece may be empty. */
struct pieces {
    int ranks, count;
    int groups;                  /* of layers: pieces 1 to groups; 0: all is one piece */
    int layer[PIECE_GROUPS + 1]; /* where each group begins and the last one ends */
    int64_t first[PIECES_MOST + 1];
};

/* Elements of a shard, of which each rank has one, the last with fewer or none; and of all. */
int64_t pieces_shard(int64_t count, int ranks);
int64_t pieces_shards(int64_t count, int ranks);
/* layers 0, as of adapters, and one rank: all is one piece. */
void pieces_cut(const struct params *p, int layers, int ranks, struct pieces *out);
/* Elements of one; and of the largest group of layers, and the largest of the others. */
int64_t pieces_elements(const struct pieces *s, int piece);
int64_t pieces_largest_group(const struct pieces *s);
/* Finished before the embedding, and no larger than a group: of the rest, norms and biases, and a head if
 * it is small. */
bool pieces_early(const struct pieces *s, int piece);
int64_t pieces_largest_other(const struct pieces *s);

/* Which is updated, and goes to the other ranks, as the i-th: what comes behind the layers before all, as each of them
 * reads norms and biases; then as the forward pass reads them. */
int pieces_updated(const struct pieces *s, int i);

/* Partial sums of squares of one shard, and of all of a rank: fixed, so that results do not depend on the machine. */
enum { SUMSQ_PARTS = 1056 };
int pieces_sumsq(const struct pieces *s);

/* Bytes of elements that come to a rank from the others in a step: gradients for its shards, of `wire` bytes each, and
 * what they have updated, of `weight` bytes each; and the partial sums of squares. */
size_t pieces_received(const struct pieces *s, size_t wire, size_t weight);

/* What a rank updates of a piece. */
struct shard {
    int64_t first;   /* in the arenas */
    int64_t kept;    /* in what a process keeps of its shards alone, one after another */
    int64_t each;    /* elements */
    int64_t count;   /* of them, those that are there */
    int64_t decayed; /* the first ones decay */
};
struct shard pieces_held(const struct pieces *s, const struct params *p, int piece, int rank);

#endif
