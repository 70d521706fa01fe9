/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange.h: the ranks of a run find each other, compare what they are, and stay in touch. Rank
 * 0 listens; every other rank has one connection, to it. /
 */
#ifndef NOJIT_TRAINER_EXCHANGE_H
#define NOJIT_TRAINER_EXCHANGE_H

#include "ranks/launchers.h"

#include <stdbool.h>
#include <stdint.h>

enum { EXCHANGE_PAYLOAD_BYTES = 1023 }; /* bytes of payload in one frame */

/* Property that must be the same on all ranks. */
struct identity {
    const char *name, *value;
};

struct exchange;

/* Arguments with which a rank meets the others. */
struct meeting {
    const struct place *place;
    int listener;    /* listening socket of wire_listen(), taken over; -1: rank 0 opens one */
    const char *run; /* name of the run; a process with another run or secret is turned away */
    const struct identity *ids;
    size_t count;
    int seconds;   /* number of seconds within which all ranks must have come */
    void *payload; /* payload of rank 0, which all ranks receive */
    size_t bytes;
    void (*say)(void *user,
                const char *line); /* callback for messages about a long wait; or NULL */
    void *user;
};

/* Wait, on all ranks, until each has identified itself. Return 0, or NJ_E_IO (a rank did not
 * come), NJ_E_ARG (ranks differ: the sentence is the same on all), NJ_E_NOMEM. */
int exchange_open(const struct meeting *m, struct exchange **out);

/* Treat a rank that is silent for this many seconds from here on as gone; the other ranks hear
 * from this one while it polls. */
void exchange_silence(struct exchange *x, int seconds);
/* Report to rank 0 how far this rank is. */
void exchange_reached(struct exchange *x, int64_t stage);
/* Return, on rank 0, a rank that has not reached the stage according to its last report; -1:
 * none. */
int exchange_behind(const struct exchange *x, int64_t stage);
/* Handle received messages, waiting up to wait_ms for the first. NJ_E_IO: a rank failed or is
 * gone; the sentence says which, and all other ranks get it, if rank 0 polls. */
int exchange_poll(struct exchange *x, int wait_ms);
/* Return whether a rank has requested a stop. */
bool exchange_stopping(const struct exchange *x);
/* Request a stop; every rank learns of it at its next poll. */
void exchange_stop(struct exchange *x);
void exchange_fail(struct exchange *x, const char *sentence);
/* Send data from rank 0 to all other ranks, which provide room for it. All ranks call it, in the
 * same order and with the same number of bytes. NJ_E_IO as above. */
int exchange_share(struct exchange *x, void *data, size_t bytes, int seconds);
/* Send data from rank 0 to one rank, which may be rank 0 itself. Called by all ranks, or by rank
 * 0 and that one. */
int exchange_deal(struct exchange *x, int rank, void *data, size_t bytes, int seconds);
/* Return the rank that this process has found gone without a message; -1: none. */
int exchange_lost(const struct exchange *x);
/* Wait until every rank has called this. NJ_E_IO as above, or if a rank has not come in time. */
int exchange_wait(struct exchange *x, int seconds);
/* Wait in two parts: exchange_come() reports that this rank is here, and whether it has trouble
 * and cannot continue; exchange_came() returns whether all ranks are here, and then sets *first
 * to the first rank with trouble, -1: none. */
void exchange_come(struct exchange *x, bool trouble);
bool exchange_came(struct exchange *x, int *first);
/* Return a rank that is not here yet, as far as this one knows. */
int exchange_awaited(const struct exchange *x);
/* Report on rank 0 which rank it waits for, if the wait has become long. began: start of the
 * wait by now_ms(); *said: number of reports so far, 0 at first. */
void exchange_say_awaited(struct exchange *x, int64_t began, int *said);
/* Wait as exchange_wait() does, at the end: a rank may exit after this. */
int exchange_finish(struct exchange *x, int seconds);
void exchange_close(struct exchange *x);

#endif
