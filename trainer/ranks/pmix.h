/* SPDX-License-Identifier: Apache-2.0
 *
 * pmix.h: asks a launcher that serves PMIx about the run, through libpmix.so.2, which is opened
 * only if a run spans hosts and nothing else has said which of them has rank 0.
 */
#ifndef NOJIT_TRAINER_PMIX_H
#define NOJIT_TRAINER_PMIX_H

#include <stddef.h>

/* Write the name of rank 0's host. NJ_E_LIBRARY: the launcher serves no PMIx, there is no
 * libpmix, or it does not answer; the sentence says which. */
int pmix_host(char *host, size_t bytes);

#endif
