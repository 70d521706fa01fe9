/* SPDX-License-Identifier: Apache-2.0
 *
 * ancestor.h: finds the launcher process that started this one, perhaps through scripts, by the
 * variables that its descendants inherit.
 */
#ifndef NOJIT_TRAINER_ANCESTOR_H
#define NOJIT_TRAINER_ANCESTOR_H

/* Return the nearest ancestor of this process that was started without the variable, or 0 if
 * /proc does not tell. */
long ancestor_without(const char *variable);

#endif
