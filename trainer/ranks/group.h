/* SPDX-License-Identifier: Apache-2.0
 *
 * group.h: this process among the ranks of a run: which rank it is, what rank 0 sends to the
 * others, and the end of all ranks when one has failed. A run of one process is a group of one,
 * in which all of these functions do nothing.
 */
#ifndef NOJIT_TRAINER_GROUP_H
#define NOJIT_TRAINER_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#include "ranks/exchange.h"
#include "ranks/launchers.h"

struct group {
    struct place place;
    const char *command; /* name of the command for sentences: "distill" */
    bool parent;         /* whether this is the parent process of the ranks, which have ended */
    int listener;        /* listening socket of rank 0 of a supervisor; -1: none */
    int supervisor;      /* descriptor of the connection to the supervisor; -1: none */
    struct link *link;   /* connection to the other ranks; NULL in a group of one */
    void (*leave)(
        void *user); /* function called before a failure ends the process, on any thread; or NULL */
    void *user;
};

#define GROUP_ALONE                                                                                \
    {                                                                                              \
        .place = {.size = 1, .local_size = 1}, .listener = -1, .supervisor = -1                    \
    }

/* Find out from --gpus (0: not given) and the launcher's variables which rank this process is,
 * and fork if ranks are to be started here; the parent returns when all of them have ended, with
 * the code and the sentence of the run. */
int group_find(struct group *g, const char *command, int gpus);
/* Return whether this process prints and writes files for all ranks. */
bool group_leads(const struct group *g);
/* Meet the other ranks, as exchange_open() does, except that the group has place, listener and
 * seconds. From here on a failure of another rank ends this process. */
int group_meet(struct group *g, struct meeting m);
/* Send data from rank 0 to all other ranks, which provide room for it. All ranks call it, with
 * the same number of bytes. */
int group_share(struct group *g, void *data, size_t bytes);
/* Send data from rank 0 to one rank, which may be rank 0 itself. */
int group_deal(struct group *g, int rank, void *data, size_t bytes);
/* Send a NUL-terminated text as group_share() does; the other ranks get a copy, to be freed. */
int group_share_text(struct group *g, char **text);
/* Report why the run ends, once for all ranks, and end the process. Returns in a group of one. */
void group_fail(struct group *g, int code);
/* Let rank 0 end the run, from here on, if `what`, which all ranks do, does not end or progress
 * within this many seconds, as when a link hangs while all processes live; `setting` names the
 * option that allows more. 0 seconds: no limit. */
void group_expect(struct group *g, const char *what, int seconds, const char *setting);
/* Report that the operation has progressed, or has ended. */
void group_moved(struct group *g);
void group_done(struct group *g);
/* Wait until all ranks have called this. */
int group_wait(struct group *g);
/* Wait as group_wait() does; *first receives the first rank that has trouble and cannot
 * continue, -1: none. */
int group_agree(struct group *g, bool trouble, int *first);
/* Wait as group_wait() does, before the ranks end. */
int group_finish(struct group *g);

#endif
