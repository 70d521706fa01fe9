/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h: a step that several ranks share, and the one place where their gradients are added. Micro-batch m of a step
 * belongs to rank m mod ranks. Sums are float32, in the order of ranks, so bits depend on their number alone: whether
 * they are processes, each of which updates its shards, or all computed here, one after another.
 */
#ifndef NOJIT_TRAINER_RANKS_H
#define NOJIT_TRAINER_RANKS_H

#include "state/engine_struct.h"

/* Where a micro-batch is staged: those of a rank lie side by side; NO_SLOT: on another rank. And back. */
int ranks_slot(const struct shape *s, int micro);
int ranks_micro(const struct shape *s, int slot);

/* What is updated here of what is trained, in so many parts: of ranks here, all at once. */
int ranks_parts(const struct engine *e);
struct shard ranks_held(const struct engine *e, int part);

/* Where ranks are processes: adds up the gradients of a group of layers, and after the last of them, group 0, the rest
 * if it is early, beside what is enqueued before engine_join(). */
void ranks_exchange(struct work *r, struct engine *e, int group);
/* After the last micro-batch of a rank: adds its gradients and its losses to those of the ranks before it, or, of
 * ranks that are processes, those of all; their groups of layers have been exchanged if shape.early says so. */
int ranks_add(struct engine *e, int rank);
/* The losses of each rank that is a process, one after another; else those of this one, which has all. */
const struct losses *ranks_losses(struct work *r, struct engine *e);
/* Squares of the summed gradients, shard by shard: so many partial sums. */
int ranks_sumsq(struct work *r, struct engine *e);
/* Brings the part of the weights that each rank has updated to all, beside what is enqueued before engine_join(). Where
 * shape.early says so, ranks_arrive() of a group of layers waits for as much: what was gathered up to that group. */
void ranks_gather(struct work *r, struct engine *e, int part);
void ranks_arrive(struct work *r, struct engine *e, int group);

/* Where rank 0 alone reads files, what it has of them goes to the others: from the device, or a few bytes of the host.
 * Elsewhere nothing. */
void ranks_send(struct work *r, struct engine *e, void *device, size_t bytes);
int ranks_tell(struct engine *e, void *host, size_t bytes);
/* A layer of a teacher that the ranks share out has been read, where they read it: all take their slice. */
int ranks_share_layer(struct engine *e, int layer);

/* Masters and moments, of which ranks that are processes have their shards alone, are whole in the memory of the
 * gradients while they are loaded or saved: collected there from all ranks, until that memory is released, or kept from
 * there. Elements of so many bytes. A step takes for granted that what it does not write of its gradients is zero. */
void ranks_collect(struct work *r, struct engine *e, const void *kept, size_t element);
/* Around it, until the stream has come to its end: see train_options.collecting. */
void ranks_collecting(const struct engine *e, bool begins);
void ranks_release(struct work *r, struct engine *e);
void ranks_keep(struct work *r, struct engine *e, void *kept, size_t element);

#endif
