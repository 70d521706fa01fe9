/* SPDX-License-Identifier: Apache-2.0
 *
 * path.h: maximum length of a path.
 */
#ifndef NOJIT_TRAINER_PATH_H
#define NOJIT_TRAINER_PATH_H

/* Size of a path with its terminating NUL; PATH_MAX of Linux. */
enum { PATH_BYTES = 4096 };

#endif
