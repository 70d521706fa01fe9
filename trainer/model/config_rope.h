/* SPDX-License-Identifier: Apache-2.0
 *
 * config_rope.h: inside of config_from(): rotary positions.
 */
#ifndef NOJIT_TRAINER_CONFIG_ROPE_H
#define NOJIT_TRAINER_CONFIG_ROPE_H

#include "model/config_fields.h"

/* Refuse models that rotate parts of heads. */
int config_check_rotary(const struct fields *f);
/* Read a table: rope_theta (theta: its value without the field) and scaling. */
int config_rope(const struct fields *f, double theta, struct rope *out);

#endif
