/* SPDX-License-Identifier: Apache-2.0
 *
 * ranks.h: a step that several ranks share, and the one place where their gradients are added. Micro-batch m of a
 * step belongs to rank m mod ranks. Sums are float32, in the order of ranks, so bits depend only on the number of
 * ranks, not on whether they are processes, each of which updates its shards, or all computed here, one after
 * another.
 */
#ifndef NOJIT_TRAINER_RANKS_H
#define NOJIT_TRAINER_RANKS_H

#include "state/engine_struct.h"

/* Return the slot of a micro-batch, or NO_SLOT if it is on another rank; ranks_micro() returns the micro-batch of a
 * slot. The slots of a rank lie side by side. */
int ranks_slot(const struct shape *s, int micro);
int ranks_micro(const struct shape *s, int slot);

/* Return the number of parts of the trained parameters that this process updates; ranks_held() returns one of them.
 * With ranks here there is one part, with all of them. */
int ranks_parts(const struct engine *e);
struct shard ranks_held(const struct engine *e, int part);

/* If ranks are processes, add up the gradients of a group of layers, and after the last group, 0, the other pieces
 * that are early, beside the work that is enqueued before engine_join(). */
void ranks_exchange(struct work *r, struct engine *e, int group);
/* After the last micro-batch of a rank, add its gradients and losses to those of the ranks before it; if ranks are
 * processes, add up those of all; groups of layers have been exchanged already if shape.early is set. */
int ranks_add(struct engine *e, int rank);
/* Return the losses of each rank that is a process, one after another; else those of this process, which has
 * all. */
const struct losses *ranks_losses(struct work *r, struct engine *e);
/* Compute sums of squares of the summed gradients, shard by shard. Return the number of partial sums. */
int ranks_sumsq(struct work *r, struct engine *e);
/* Send the weights that each rank has updated to all, beside the work that is enqueued before engine_join(). If
 * shape.early is set, ranks_arrive() waits for the weights gathered up to that group of layers. */
void ranks_gather(struct work *r, struct engine *e, int part);
void ranks_arrive(struct work *r, struct engine *e, int group);

/* If rank 0 alone reads files, send what it has read to the others: from the device, or a few bytes of the host.
 * Otherwise do nothing. */
void ranks_send(struct work *r, struct engine *e, void *device, size_t bytes);
int ranks_tell(struct engine *e, void *host, size_t bytes);
/* Send a layer of a shared teacher to all ranks, if rank 0 alone has read it, and take this rank's slice. */
int ranks_share_layer(struct engine *e, int layer);

/* Collect master weights or moments, elements of so many bytes, from all ranks in the memory of the gradients
 * (_collect), keep this rank's shards of them from there (_keep), or clear that memory (_release). Ranks that are
 * processes have only their shards, but load and save the whole. A step relies on zeros in gradients that it does
 * not write. */
void ranks_collect(struct work *r, struct engine *e, const void *kept, size_t element);
/* Call train_options.collecting before and after that, once the stream has come to its end. */
void ranks_collecting(const struct engine *e, bool begins);
void ranks_release(struct work *r, struct engine *e);
void ranks_keep(struct work *r, struct engine *e, void *kept, size_t element);

#endif
