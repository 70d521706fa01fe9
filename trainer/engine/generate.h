/* SPDX-License-Identifier: Apache-2.0
 *
 * generate.h: what generation shares with the preparation of products.
 */
#ifndef NOJIT_TRAINER_GENERATE_H
#define NOJIT_TRAINER_GENERATE_H

#include "engine/engine_struct.h"

/* Logits of one token, whose id and position are in e->mem.rows. */
void generate_logits(struct work *r, struct engine *e, int pos);

#endif
