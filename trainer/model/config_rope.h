/* SPDX-License-Identifier: Apache-2.0
 *
 * config_rope.h: inside of config_from(): rotary positions.
 */
#ifndef NOJIT_TRAINER_CONFIG_ROPE_H
#define NOJIT_TRAINER_CONFIG_ROPE_H

#include "base/families.h"
#include "model/config_fields.h"

/* Read the tables of rotations: c->arch.rope[0], and for families whose layers with a window have a table of their own
 * c->arch.rope[1]. Sizes of heads and positions have been read; the positions become fewer where the rest of them needs
 * more than a table. */
int config_ropes(const struct fields *f, const struct family *family, struct model_config *c);

#endif
