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

/* Lay out the slices; comes before the matrices are carved. */
int teacher_shard_layout(struct net *n, int rank, int ranks);
void teacher_shard_free(struct net *n);
/* Carve the layers that stay here, or with a shard their slices. Return the bytes that all ranks have alike: slices
 * are not. */
size_t teacher_shard_carve_layers(const struct net *n, struct carve *m);
/* Return the bytes of each of two slots, after their slices have been carved; 0: there are no slots. */
size_t teacher_shard_slot_bytes(const struct net *n);
void teacher_shard_carve_slots(const struct net *n, struct carve *m);
void teacher_shard_connect(struct net *n, nj_comm *comm);
/* Return whether a layer can be read at any time, not in a pass alone; -1: head, embedding and vectors, which can. */
bool teacher_shard_here(const struct net *n, int layer);
/* Return where a layer lies when its weights have been loaded, the first slot, and its bytes; NULL: it stays there.
 * teacher_shard_keep() takes the slice of this rank from the slot, where the next layer can then be loaded. */
char *teacher_shard_loaded(const struct net *n, int layer, size_t *bytes);
void teacher_shard_keep(struct work *r, const struct net *n, int layer);

/* Return whether a pass is a call of all ranks: none leaves it out, and no graph holds it. */
bool teacher_shard_collective(const struct net *n);
/* Bring the layers of a pass. After _begin() layer 0 is there. Around each layer that is enqueued, _ahead() begins
 * to bring the next one (after the last layer, layer 0 of the next pass), and _arrive() waits for it. Not for use
 * in a graph. */
void teacher_shard_begin(struct work *r, const struct net *n);
void teacher_shard_ahead(struct work *r, const struct net *n, int layer);
void teacher_shard_arrive(struct work *r, const struct net *n);
/* Take this rank's part in a pass that only other ranks compute. */
void teacher_shard_attend(struct work *r, const struct net *n);

#endif
