/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h: a step that several ranks share. Gradients of ranks are added here and nowhere else. Micro-batch m of a step
 * belongs to rank m mod ranks. Sums are float32, in the order of ranks, so the bits depend only on the number of ranks.
 * Ranks are either processes, each of which updates a shard of the parameters, or virtual ranks (RANKS_VIRTUAL), which
 * one process computes in turn.
 */
#ifndef NOJIT_TRAINER_RANKS_H
#define NOJIT_TRAINER_RANKS_H

#include "state/engine_struct.h"

/* Return the slot of a micro-batch in this process, or NO_SLOT if it belongs to another rank; ranks_micro() returns the
 * micro-batch of a slot. The slots of a rank are consecutive. */
int ranks_slot(const struct shape *s, int micro);
int ranks_micro(const struct shape *s, int slot);

/* Return the number of parts of the trained parameters that this process updates; ranks_held() returns one of them. A
 * process has a shard of each piece; with virtual ranks there is one part, with all parameters. */
int ranks_parts(const struct engine *e);
struct shard ranks_held(const struct engine *e, int part);

/* Exchange the gradients of a group of layers among ranks that are processes, beside the work that is enqueued before
 * engine_join(). Group 0, the last of a backward pass, is followed by the piece after the layers, if that is overlapped
 * (pieces_overlapped()). */
void ranks_exchange(struct work *r, struct engine *e, int group);
/* Add the gradients and losses of a rank, after its last micro-batch, to those of the ranks before it. Ranks that
 * are processes add those of all ranks at once; if shape.overlapped is set, ranks_exchange() has exchanged some pieces
 * already. */
int ranks_add(struct engine *e, int rank);
/* Return the losses of each rank that is a process, one after another; with virtual ranks, the losses of this process,
 * which computes all of them. */
const struct losses *ranks_losses(struct work *r, struct engine *e);
/* Compute sums of squares of the summed gradients, shard by shard. Return the number of partial sums. */
int ranks_sumsq(struct work *r, struct engine *e);
/* Send the weights that each rank has updated in a part to all ranks, beside the work that is enqueued before
 * engine_join(). If shape.overlapped is set, ranks_arrive() waits until the weights of a group of layers are here. */
void ranks_gather(struct work *r, struct engine *e, int part);
void ranks_arrive(struct work *r, struct engine *e, int group);

/* If rank 0 alone reads files, send the bytes that it has read to the other ranks, on the device (ranks_send), or a few
 * bytes on the host (ranks_tell). Otherwise do nothing. */
void ranks_send(struct work *r, struct engine *e, void *device, size_t bytes);
int ranks_tell(struct engine *e, void *host, size_t bytes);
/* Send a layer of a sharded teacher to all ranks, if rank 0 alone has read it, and keep this rank's slice. */
int ranks_share_layer(struct engine *e, int layer);

/* Ranks that are processes have shards of the master weights and moments, but load and save them whole. ranks_collect()
 * collects such an array, with `element` bytes per element, from all ranks in the memory of the gradients. ranks_keep()
 * copies this rank's shards of an array from there. After either, ranks_release() clears that memory, since gradients
 * that a step does not write must already be zero; ranks_keep() calls it itself. */
void ranks_collect(struct work *r, struct engine *e, const void *kept, size_t element);
/* Report the beginning or the end of a collection to train_options.collecting, whose time limit covers it. */
void ranks_collecting(const struct engine *e, bool begins);
void ranks_release(struct work *r, struct engine *e);
void ranks_keep(struct work *r, struct engine *e, void *kept, size_t element);

#endif
