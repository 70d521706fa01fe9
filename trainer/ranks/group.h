/* SPDX-License-Identifier: Apache-2.0
 *
 * group.h: this process among the ranks of a run: who it is, what rank 0 tells the others, and the end of all when one
 * has failed. A run of one process is a group of one, in which nothing here does anything.
 */
#ifndef NOJIT_TRAINER_GROUP_H
#define NOJIT_TRAINER_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "ranks/exchange.h"
#include "ranks/launchers.h"

struct group {
    struct place place;
    const char *command; /* for sentences: "distill" */
    bool parent;         /* its ranks were other processes, and have ended */
    int listener;        /* for the exchange, of rank 0 of a supervisor; -1: none */
    int supervisor;      /* -1: there is none */
    struct link *link;   /* NULL: it is alone */
    void (*leave)(
        void *user); /* called before a failure ends the process, on any thread; or NULL */
    void *user;
};

#define GROUP_ALONE                                                                                \
    {                                                                                              \
        .place = {.size = 1, .local_size = 1}, .listener = -1, .supervisor = -1                    \
    }

/* Finds out by --gpus (0: not given) and the launcher's variables which rank this process is, and forks where ranks are
 * to be made; in their parent it returns when all have ended, with the code and the sentence of the run. */
int group_find(struct group *g, const char *command, int gpus);
/* Whether it speaks and writes for all. */
bool group_leads(const struct group *g);
/* Meets the others, as exchange_open(), but for place, listener and seconds, which the group has. From here on a
 * failure of another rank ends this process. */
int group_meet(struct group *g, struct meeting m);
/* Of rank 0: what all get; of the others: room for it. All call it with the same number of bytes. */
int group_share(struct group *g, void *data, size_t bytes);
/* The same for one rank alone, which may be rank 0. */
int group_deal(struct group *g, int rank, void *data, size_t bytes);
/* What group_share() does for a text, which ends with a NUL; the others get a copy, to be freed. */
int group_share_text(struct group *g, char **text);
/* Says why the run ends, once for all ranks, and ends the process. Returns in a group of one. */
void group_fail(struct group *g, int code);
/* From here on rank 0 ends the run if `what`, which all ranks do, does not end or move within so many seconds, as
 * where a link hangs while all processes live; `setting` allows more. 0 seconds: it has as many as it wants. */
void group_expect(struct group *g, const char *what, int seconds, const char *setting);
/* It moves, or has ended. */
void group_moved(struct group *g);
void group_done(struct group *g);
/* Waits until all ranks have come here. */
int group_wait(struct group *g);
/* The same; *first: the first rank with trouble, which keeps it from going on, -1: none. */
int group_agree(struct group *g, bool trouble, int *first);
/* The same, before they end. */
int group_finish(struct group *g);

#endif
