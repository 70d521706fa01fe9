/* SPDX-License-Identifier: Apache-2.0
 *
 * real_path.h: the canonical name of a path that may not exist yet.
 */
#ifndef NOJIT_TRAINER_REAL_PATH_H
#define NOJIT_TRAINER_REAL_PATH_H

#include <stddef.h>

/* Make the path absolute and resolve its links as far as it exists; the rest is kept as written. */
void real_path(const char *path, char *out, size_t bytes);

#endif
