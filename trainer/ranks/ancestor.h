/* SPDX-License-Identifier: Apache-2.0
 *
 * ancestor.h: the process of a launcher that started this one, perhaps by scripts, found by what these inherit from it.
 */
#ifndef NOJIT_TRAINER_ANCESTOR_H
#define NOJIT_TRAINER_ANCESTOR_H

/* Returns the nearest process above this one that was started without the variable; 0: /proc does not tell. */
long ancestor_without(const char *variable);

#endif
