/* SPDX-License-Identifier: Apache-2.0
 *
 * supervisor.h: a process for each rank of this host, and a parent that watches them. They are
 * forked before CUDA is initialized; the parent forwards signals, and ends the other ranks when
 * one has failed.
 */
#ifndef NOJIT_TRAINER_SUPERVISOR_H
#define NOJIT_TRAINER_SUPERVISOR_H

#include <stdbool.h>

#include "ranks/launchers.h"

/* Identity of a forked rank. */
struct rank {
    struct place place;
    int listener;   /* listening socket of rank 0, to be taken over; -1: rank 0 opens its own */
    int supervisor; /* descriptor to which the rank writes why it ends */
};

/* Fork `count` ranks. Return true in each of them, and false in the parent when all have ended:
 * *code is then 0, or the code of the rank that failed first, with its sentence. base: the place
 * of the parent itself, one of base->size processes that fork as many. */
bool supervise(const struct place *base, int count, struct rank *out, int *code);
/* Report to the supervisor why this rank ends; the first rank to do so is the cause. The process
 * ends soon after, by itself or by its supervisor. unmet: the rank has not met the others yet,
 * which have nothing to save. */
void supervised_fail(int supervisor, int rank, int code, bool unmet, const char *sentence);

#endif
