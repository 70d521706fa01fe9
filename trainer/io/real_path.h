/* SPDX-License-Identifier: Apache-2.0
 *
 * real_path.h: the one name of a place that may not be there yet.
 */
#ifndef NOJIT_TRAINER_REAL_PATH_H
#define NOJIT_TRAINER_REAL_PATH_H

#include <stddef.h>

/* Makes the path absolute and free of links, as far as it exists; what does not is kept as it is written. */
void real_path(const char *path, char *out, size_t bytes);

#endif
