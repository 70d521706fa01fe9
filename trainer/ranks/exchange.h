/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange.h: the ranks of a run find each other, compare what they are, and stay in touch. Rank 0 listens; every
 * other rank has one connection, to it.
 */
#ifndef NOJIT_TRAINER_EXCHANGE_H
#define NOJIT_TRAINER_EXCHANGE_H

#include "ranks/launchers.h"

#include <stdbool.h>
#include <stdint.h>

enum { EXCHANGE_PAYLOAD_BYTES = 1023 }; /* what one frame holds */

/* What must be the same on all ranks. */
struct identity {
    const char *name, *value;
};

struct exchange;

/* What a rank brings when it meets the others. */
struct meeting {
    const struct place *place;
    int listener;    /* of wire_listen(), taken over; -1: rank 0 makes it */
    const char *run; /* its name; a process of another run, or with another secret, is sent away */
    const struct identity *ids;
    size_t count;
    int seconds;   /* in which all must have come */
    void *payload; /* rank 0's, which all get */
    size_t bytes;
    void (*say)(void *user,
                const char *line); /* for whom a wait lasts, where it is long; or NULL */
    void *user;
};

/* Waits, on all ranks, until each has said who it is.
 * Returns 0, or NJ_E_IO (a rank did not come), NJ_E_ARG (ranks differ: the sentence is the same on all), NJ_E_NOMEM. */
int exchange_open(const struct meeting *m, struct exchange **out);

/* From here on a rank that is silent for so many seconds counts as gone; others hear of this one if it polls. */
void exchange_silence(struct exchange *x, int seconds);
/* How far this rank is, which rank 0 hears. */
void exchange_reached(struct exchange *x, int64_t stage);
/* Of rank 0: a rank that is not as far, by what it said last; -1: none. */
int exchange_behind(const struct exchange *x, int64_t stage);
/* Handles what came, waiting up to wait_ms for the first of it. NJ_E_IO: a rank failed or is gone; the sentence says
 * which, and all other ranks get it, if rank 0 polls. */
int exchange_poll(struct exchange *x, int wait_ms);
/* Somebody asked for a stop. */
bool exchange_stopping(const struct exchange *x);
/* Every rank learns it at its next poll. */
void exchange_stop(struct exchange *x);
void exchange_fail(struct exchange *x, const char *sentence);
/* Of rank 0: what all get; of the others: room for it. All call it, in the same order, with the same number of bytes.
 * NJ_E_IO as above. */
int exchange_share(struct exchange *x, void *data, size_t bytes, int seconds);
/* The same for one rank alone, which may be rank 0. All call it, or rank 0 and that one. */
int exchange_deal(struct exchange *x, int rank, void *data, size_t bytes, int seconds);
/* The rank that this process has found to be gone without a word; -1: none. */
int exchange_lost(const struct exchange *x);
/* Waits until every rank has come here. NJ_E_IO as above, or one has not come in time. */
int exchange_wait(struct exchange *x, int seconds);
/* The same in two parts: this rank is here, and whether something keeps it from going on; are all here? Then *first is
 * the first rank with such trouble, -1: none. */
void exchange_come(struct exchange *x, bool trouble);
bool exchange_came(struct exchange *x, int *first);
/* A rank that is not here yet, as far as this one knows. */
int exchange_awaited(const struct exchange *x);
/* Says on rank 0 for which rank it waits, where that has taken long. began: by now_ms(); *said: how often, 0 at
 * first. */
void exchange_say_awaited(struct exchange *x, int64_t began, int *said);
/* The same, at the end: a rank may go from here on. */
int exchange_finish(struct exchange *x, int seconds);
void exchange_close(struct exchange *x);

#endif
