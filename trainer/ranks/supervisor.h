/* SPDX-License-Identifier: Apache-2.0
 *
 * supervisor.h: a process for each rank of this host, and one that watches them. They are forked before anything of
 * CUDA exists; the parent passes signals on, and ends the others when one has failed.
 */
#ifndef NOJIT_TRAINER_SUPERVISOR_H
#define NOJIT_TRAINER_SUPERVISOR_H

#include <stdbool.h>

#include "ranks/launchers.h"

/* What a forked rank is. */
struct rank {
    struct place place;
    int listener;   /* where rank 0 listens, to be taken over; -1: it makes its own */
    int supervisor; /* to which it says why it ends */
};

/* Forks `count` ranks. True in each of them. False in the parent, when all have ended: *code is 0, or that of the rank
 * that failed first, with its sentence. base: the place of the parent itself, one of base->size that fork as many. */
bool supervise(const struct place *base, int count, struct rank *out, int *code);
/* The first to say so is the cause. The process ends soon after, by itself or by its supervisor.
 * unmet: the rank has not met the others yet, which have nothing to save. */
void supervised_fail(int supervisor, int rank, int code, bool unmet, const char *sentence);

#endif
