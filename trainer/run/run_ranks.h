/* SPDX-License-Identifier: Apache-2.0
 *
 * run_ranks.h: a run among the processes that share its steps. Rank 0 alone reads (but with --every-rank-reads),
 * speaks, writes, and decides what could come out differently elsewhere.
 */
#ifndef NOJIT_TRAINER_RUN_RANKS_H
#define NOJIT_TRAINER_RUN_RANKS_H

#include "run/run.h"

/* Find the number of GPUs that --gpus asks for; they are counted if it says all. */
int run_gpus(const struct settings *s, int *out);
/* Return the number of the GPU of the machine that this rank runs on. */
int run_ordinal(const struct run *r);
/* Meet the other ranks and connect the devices. */
int run_join(struct run *r);
/* Set this rank and the number of processes, and as many micro-batches if no number is given. */
void run_rank_options(const struct settings *s, int rank, int size, struct train_options *out);
/* Send the facts about the models of rank 0, if it alone reads, to the other ranks, for their options and engines. */
int run_share_models(struct run *r);
/* Refuse --teacher-shard and --virtual-ranks where they have no meaning. */
int run_check_ranks(const struct settings *s, const struct train_options *o);
/* Make the GEMM algorithms of rank 0 those of all. Call it on rank 0 when it knows them, elsewhere before an engine
 * is opened. */
int run_share_gemms(struct run *r);
/* Refuse lines "name value" that differ from those of rank 0. */
int run_compare(struct run *r, const char *lines);
/* Return the memory that NCCL may take on each GPU besides the plan; a run measures it (comm_bytes). */
size_t run_comm_estimate(const struct train_options *o);
/* Return "4 GPUs" or a similar phrase for what shares the steps; "" for a run of one. */
const char *run_ranks_text(const struct run *r, char *buffer, size_t bytes);

#endif
