/* SPDX-License-Identifier: Apache-2.0
 *
 * run_ranks.h: a run among the processes that share its steps. Rank 0 alone reads (but with --every-rank-reads),
 * speaks, writes, and decides what could come out differently elsewhere.
 */
#ifndef NOJIT_TRAINER_RUN_RANKS_H
#define NOJIT_TRAINER_RUN_RANKS_H

#include "run/run.h"

/* GPUs that --gpus asks for, counted where it says all. */
int run_gpus(const struct settings *s, int *out);
/* Of the machine, the one that this rank runs on. */
int run_ordinal(const struct run *r);
/* Meets the other ranks and connects the devices. */
int run_join(struct run *r);
/* This rank, of so many processes, and as many micro-batches where none are said. */
void run_rank_options(const struct settings *s, int rank, int size, struct train_options *out);
/* Where rank 0 alone reads: what its models are, for the other ranks' options and engines. */
int run_share_models(struct run *r);
/* Refuses --teacher-shard and --virtual-ranks where they have no meaning. */
int run_check_ranks(const struct settings *s, const struct train_options *o);
/* The GEMM algorithms that rank 0 takes are those of all: on rank 0 when it knows them, elsewhere before an engine is
 * opened. */
int run_share_gemms(struct run *r);
/* Refuses what differs from rank 0: lines "name value". */
int run_compare(struct run *r, const char *lines);
/* Memory that NCCL may take of each GPU, beside the plan; a run measures it (comm_bytes). */
size_t run_comm_estimate(const struct train_options *o);
/* "4 GPUs" or what else shares the steps; "" for a run of one. */
const char *run_ranks_text(const struct run *r, char *buffer, size_t bytes);

#endif
