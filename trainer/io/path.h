/* SPDX-License-Identifier: Apache-2.0
 *
 * path.h: how long a path may be.
 */
#ifndef NOJIT_TRAINER_PATH_H
#define NOJIT_TRAINER_PATH_H

/* With the NUL that ends it; PATH_MAX of Linux. */
enum { PATH_BYTES = 4096 };

#endif
