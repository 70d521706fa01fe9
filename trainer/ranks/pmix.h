/* SPDX-License-Identifier: Apache-2.0
 *
 * pmix.h: what a launcher that serves PMIx knows of a run beyond its variables, asked of libpmix.so.2, which is opened
 * where a run spans hosts and nothing else has said on which of them rank 0 is.
 */
#ifndef NOJIT_TRAINER_PMIX_H
#define NOJIT_TRAINER_PMIX_H

#include <stddef.h>

/* The name of rank 0's host. NJ_E_LIBRARY: the launcher serves no PMIx, there is no libpmix, or it does not answer; the
 * sentence says which. */
int pmix_host(char *host, size_t bytes);

#endif
