/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_struct.h: shared by the files of the exchange: its state, its failures, and the
 * messages about its waits.
 */
#ifndef NOJIT_TRAINER_EXCHANGE_STRUCT_H
#define NOJIT_TRAINER_EXCHANGE_STRUCT_H

#include <poll.h>

#include "ranks/exchange.h"
#include "ranks/wire.h"

struct exchange {
    int rank, size, peers; /* number of peers: of rank 0, one per rank; of others, rank 0 alone */
    struct peer *peer;
    struct pollfd *poll;
    bool stop;
    int rc, lost, barriers;
    int trouble; /* first rank that came to the barrier with trouble; -1: none */
    int silence; /* seconds of silence after which a rank counts as gone; 0: no limit */
    int64_t beat_at, stage;
    char sentence[1024];
    char *shared; /* data from rank 0 that has not been taken yet */
    size_t shared_bytes, shared_room;
    void (*say)(void *user, const char *line);
    void *user;
};

enum { SEND_MS = 1000 };

/* Send a text to all peers except one; except: -1 for none. */
void exchange_tell(struct exchange *x, uint32_t kind, int rank, const char *text, int except);
/* Record a failure and tell the other ranks; `from` knows of it already. The first failure is
 * that of the run: return its code. */
int exchange_record(struct exchange *x, int rc, int rank, const char *sentence, int from);
/* Return whether a message is due about a wait that began at this time: after a few seconds,
 * then every minute. *said: number of messages so far. */
bool word_is_due(int64_t began, int *said);
/* Pass a line to the callback for the messages of this rank. */
void exchange_say(const struct exchange *x, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
