/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.h: the arrays of a micro-batch on the device, or staged for it in the same layout. batch/batch.def lists them.
 */
#ifndef NOJIT_TRAINER_NET_ROWS_H
#define NOJIT_TRAINER_NET_ROWS_H

#include "batch/batch.h"
#include "net/carve.h"

#include <stdint.h>

/* Arrays of a micro-batch; those that the run does not use are NULL. */
struct rows {
#define DEVICE(name, type, use, count) type *name;
#include "batch/batch.def"
};
/* Carve the arrays of these uses (enum array_use) for `positions` positions, of which at most `targets`, padded to
 * whole chunks, have a target. */
void rows_carve(int positions, int targets, unsigned uses, struct carve *c, struct rows *out);
/* Return the rows that the teacher reads. */
struct rows rows_of_teacher(const struct rows *rows);

#endif
