/* SPDX-License-Identifier: Apache-2.0
 *
 * dealt.h: batches of a run of several ranks: rank 0 reads and deals them out, or each rank reads for itself.
 */
#ifndef NOJIT_TRAINER_DEALT_H
#define NOJIT_TRAINER_DEALT_H

#include "batch/data.h"
#include "ranks/group.h"

/* Let *s be batches that rank 0 reads from what *s was. *d and *s: files that rank 0 has opened with these options; on
 * the others NULL, and then what all know of them. Batch b after a seek goes to rank b mod their number; the others
 * learn how many targets it has. All ask in the same order. What fails on rank 0 fails on all, as NJ_ELSEWHERE. A group
 * of one leaves *s as it is. */
int batches_deal(struct batch_source **s, struct data **d, const struct data_options *o,
                 struct group *g);
/* Let *s be the same batches, of ranks each of which reads all of them and learns where another one could not. */
int batches_read_alike(struct batch_source **s, struct group *g);

#endif
