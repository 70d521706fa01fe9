/* SPDX-License-Identifier: Apache-2.0
 *
 * greeting.h: what a rank says of itself to rank 0 before all else, and what rank 0 reads in it.
 */
#ifndef NOJIT_TRAINER_GREETING_H
#define NOJIT_TRAINER_GREETING_H

#include "ranks/exchange.h"

#include <stdbool.h>
#include <stddef.h>

enum { GREETING_BYTES = 65536 }; /* the longest */

/* Returns NULL where there is no memory. */
char *greeting_make(const struct place *p, const char *run, const struct identity *ids,
                    size_t count, size_t *bytes);
/* Bytes of the greeting whose first `have` there are; while its head is not whole, those of the head. 0: it is none. */
size_t greeting_bytes(const char *data, size_t have);

/* Of whole greetings, own: that of rank 0. */
/* Whether both have the same secret. How long this takes says nothing of where they differ. */
bool greeting_trusted(const char *own, const char *data);
const char *greeting_run(const char *data);
/* Which rank it is, or NJ_E_ARG: it can be none of this run. */
int greeting_rank(const char *own, const char *data, int *rank);
/* NJ_E_ARG: the identities differ; names the first difference. */
int greeting_compare(const char *own, const char *data);

#endif
