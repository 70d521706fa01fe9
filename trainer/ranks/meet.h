/* SPDX-License-Identifier: Apache-2.0
 *
 * meet.h: how ranks find each other: rank 0 gathers those that connect to it, and sends strangers away.
 */
#ifndef NOJIT_TRAINER_MEET_H
#define NOJIT_TRAINER_MEET_H

#include "ranks/exchange_struct.h"

/* How many there may be, beside the ranks, that have connected and not said yet who they are. */
enum { MEET_STRANGERS = 64 };

/* Waits on rank 0 until all others have connected and are what it is, and gives them its payload. own: its greeting. */
int meet_all(struct exchange *x, const struct meeting *m, const char *own, int listener);
/* Connects another rank to rank 0, and waits for the payload. */
int meet_first(struct exchange *x, const struct meeting *m, const char *own, size_t own_bytes);

#endif
