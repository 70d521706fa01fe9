/* SPDX-License-Identifier: Apache-2.0
 *
 * teacher_shard.h: a net that only runs forward, of whose layers each rank that is a process keeps a slice: the
 * matrices of a layer lie one after another, and rank r has the r-th of as many equal parts as there are ranks. All
 * parts are gathered beside the layer before, into one of two slots. Norms, biases, embedding and head are on every
 * rank.
 *
 * All ranks make the same calls. A net without a shard has all layers: then nothing here does anything.
 */
#ifndef NOJIT_TRAINER_TEACHER_SHARD_H
#define NOJIT_TRAINER_TEACHER_SHARD_H

#include "net/carve.h"
#include "net/net.h"
#include "net/work.h"

/* Before the matrices are carved. */
int teacher_shard_layout(struct net *n, int rank, int ranks);
void teacher_shard_free(struct net *n);
/* The layers, then the slots: with a shard a slice of each layer, without one the whole of it and no slots. */
void teacher_shard_carve_layers(const struct net *n, struct carve *m);
void teacher_shard_carve_slots(const struct net *n, struct carve *m);
void teacher_shard_connect(struct net *n, nj_comm *comm);
/* While weights are loaded each layer lies in the first slot: where, and its bytes; and its slice is taken there. */
char *teacher_shard_loaded(const struct net *n, int layer, size_t *bytes);
void teacher_shard_keep(struct work *r, const struct net *n, int layer);

/* A pass has layer 0 after _begin(). Around each layer that is enqueued: _ahead() begins to bring the one after it,
 * after the last layer 0 of the next pass; _arrive() waits for that. Not in a graph. */
void teacher_shard_begin(struct work *r, const struct net *n);
void teacher_shard_ahead(struct work *r, const struct net *n, int layer);
void teacher_shard_arrive(struct work *r, const struct net *n);
/* This rank's part of a pass that only others compute. */
void teacher_shard_attend(struct work *r, const struct net *n);

#endif
