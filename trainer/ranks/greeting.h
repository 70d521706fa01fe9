/* SPDX-License-Identifier: Apache-2.0
 *
 * greeting.h: the first message that a rank sends to rank 0, which says what it is; rank 0
 * parses it here.
 */
#ifndef NOJIT_TRAINER_GREETING_H
#define NOJIT_TRAINER_GREETING_H

#include "ranks/exchange.h"

#include <stdbool.h>
#include <stddef.h>

enum { GREETING_BYTES = 65536 }; /* maximum size of a greeting */

/* Make a greeting; return NULL if memory runs out. */
char *greeting_make(const struct place *p, const char *run, const struct identity *ids,
                    size_t count, size_t *bytes);
/* Return the size of the greeting that begins with these `have` bytes, or the size of its head
 * while that is incomplete; 0: it is not a greeting. */
size_t greeting_bytes(const char *data, size_t have);

/* The functions below take complete greetings; own: that of rank 0. */
/* Return whether both greetings have the same secret, in a time that does not reveal where the
 * secrets differ. */
bool greeting_trusted(const char *own, const char *data);
const char *greeting_run(const char *data);
/* Read which rank the greeting is from; NJ_E_ARG: it cannot be a rank of this run. */
int greeting_rank(const char *own, const char *data, int *rank);
/* Compare the identities; NJ_E_ARG: they differ, and the sentence names the first difference. */
int greeting_compare(const char *own, const char *data);

#endif
