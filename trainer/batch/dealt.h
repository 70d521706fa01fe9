/* SPDX-License-Identifier: Apache-2.0
 *
 * dealt.h: batches of a run of several ranks: rank 0 reads and deals them out, or each rank reads for itself.
 */
#ifndef NOJIT_TRAINER_DEALT_H
#define NOJIT_TRAINER_DEALT_H

#include "batch/data.h"
#include "ranks/group.h"

/* Replace *s by batches that rank 0 reads from it. *d and *s: files that rank 0 has opened with these options; NULL on
 * the other ranks, which get data that has no files. Batch b after a seek goes to rank b mod the number of ranks; the
 * others learn how many targets it has. All ranks ask in the same order. A failure on rank 0 is a failure on all, as
 * NJ_ELSEWHERE. A group of one leaves *s as it is. */
int batches_deal(struct batch_source **s, struct data **d, const struct data_options *o,
                 struct group *g);
/* Replace *s by the same batches, of which each rank reads all and learns when another one could not. */
int batches_read_alike(struct batch_source **s, struct group *g);

#endif
