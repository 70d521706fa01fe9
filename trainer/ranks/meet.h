/* SPDX-License-Identifier: Apache-2.0
 *
 * meet.h: how ranks find each other: rank 0 accepts those that connect to it, and turns
 * strangers away.
 */
#ifndef NOJIT_TRAINER_MEET_H
#define NOJIT_TRAINER_MEET_H

#include "ranks/exchange_struct.h"

/* Maximum number of connections, beside those of the ranks, that have not identified themselves
 * yet. */
enum { MEET_STRANGERS = 64 };

/* Wait on rank 0 until all other ranks have connected and match it, and send them its payload.
 * own: its greeting. */
int meet_all(struct exchange *x, const struct meeting *m, const char *own, int listener);
/* Connect another rank to rank 0, and wait for the payload. */
int meet_first(struct exchange *x, const struct meeting *m, const char *own, size_t own_bytes);

#endif
