/* SPDX-License-Identifier: Apache-2.0
 *
 * binary_hash.h: which build of nojit is running.
 */
#ifndef NOJIT_TRAINER_BINARY_HASH_H
#define NOJIT_TRAINER_BINARY_HASH_H

#include <stdint.h>

/* Return the XXH3-64 of the running binary. */
uint64_t binary_hash(void);

#endif
