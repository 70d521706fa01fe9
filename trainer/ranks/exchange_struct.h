/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_struct.h: what the files of the exchange share: its state, its failures, and the words about its waits.
 */
#ifndef NOJIT_TRAINER_EXCHANGE_STRUCT_H
#define NOJIT_TRAINER_EXCHANGE_STRUCT_H

#include <poll.h>

#include "ranks/exchange.h"
#include "ranks/wire.h"

struct exchange {
    int rank, size, peers; /* rank 0 has a peer for each rank; another one has rank 0 */
    struct peer *peer;
    struct pollfd *poll;
    bool stop;
    int rc, lost, barriers;
    int trouble; /* the first rank that came to the barrier with some; -1: none */
    int silence; /* seconds, 0: no matter */
    int64_t beat_at, stage;
    char sentence[1024];
    char *shared; /* by rank 0, and not taken yet */
    size_t shared_bytes, shared_room;
    void (*say)(void *user, const char *line);
    void *user;
};

enum { SEND_MS = 1000 };

/* Sends a text to all peers but one; except: -1 for all. */
void exchange_tell(struct exchange *x, uint32_t kind, int rank, const char *text, int except);
/* Records a failure and tells the others, of which `from` knows; the first is the run's. Returns that one's code. */
int exchange_record(struct exchange *x, int rc, int rank, const char *sentence, int from);
/* Whether a wait that began then is due for a word: after a few seconds, then every minute. *said: how many there
 * were. */
bool word_is_due(int64_t began, int *said);
/* Says a line to whoever reads what this rank says. */
void exchange_say(const struct exchange *x, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
