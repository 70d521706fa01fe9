/* SPDX-License-Identifier: Apache-2.0
 *
 * pieces.h: the trained parameters, cut into pieces that ranks exchange one by one: the embedding, groups of layers,
 * and the rest behind them (an untied head, norms and biases). The gradients of a group are finished while the
 * backward pass is still at the layers below it. A rank updates a shard of each piece.
 */
#ifndef NOJIT_TRAINER_PIECES_H
#define NOJIT_TRAINER_PIECES_H

#include "net/params.h"

enum { PIECE_GROUPS = 8, PIECES_MOST = PIECE_GROUPS + 2 };
/* Bounds of the pieces. Pieces are whole shards, so each is cut a little above the first element of its group, and
 * the elements between belong to the piece below, which is finished later; the last group is cut below its end. A
 * piece may be empty. */
struct pieces {
    int ranks, count;
    /* Number of groups of layers, pieces 1 to groups; 0: all is one piece. */
    int groups;
    int layer[PIECE_GROUPS + 1]; /* first layer of each group, and the end of the last one */
    int64_t first[PIECES_MOST + 1];
};

/* Return the number of elements of a shard, of which each rank has one, the last with fewer or none; or of all
 * shards. */
int64_t pieces_shard(int64_t count, int ranks);
int64_t pieces_shards(int64_t count, int ranks);
/* Cut the parameters into pieces. With layers 0, as for adapters, or with one rank, all is one piece. */
void pieces_cut(const struct params *p, int layers, int ranks, struct pieces *out);
/* Return the number of elements of a piece, or of the largest group of layers, or of the largest other piece. */
int64_t pieces_elements(const struct pieces *s, int piece);
int64_t pieces_largest_group(const struct pieces *s);
/* Return whether a piece other than a group is finished before the embedding and no larger than a group: norms and
 * biases, and a head if it is small. */
bool pieces_early(const struct pieces *s, int piece);
int64_t pieces_largest_other(const struct pieces *s);

/* Return the i-th piece that is updated and sent to the other ranks: the one behind the layers comes first, as each
 * layer reads norms and biases; then the order is that of the forward pass. */
int pieces_updated(const struct pieces *s, int i);

/* Partial sums of squares of one shard; pieces_sumsq() returns the number for all shards of a rank. They are fixed,
 * so that results do not depend on the machine. */
enum { SUMSQ_PARTS = 1056 };
int pieces_sumsq(const struct pieces *s);

/* Return the bytes that a rank receives from the others in a step: gradients for its shards, of `wire` bytes per
 * element, updated weights, of `weight` bytes per element, and the partial sums of squares. */
size_t pieces_received(const struct pieces *s, size_t wire, size_t weight);

/* Part of a piece that a rank updates. */
struct shard {
    int64_t first; /* first element in the arenas */
    /* First element in the memory where a process keeps its shards alone, one after another. */
    int64_t kept;
    int64_t each;    /* number of elements of a shard */
    int64_t count;   /* number of them that exist */
    int64_t decayed; /* number of the first ones, which decay */
};
struct shard pieces_held(const struct pieces *s, const struct params *p, int piece, int rank);

#endif
