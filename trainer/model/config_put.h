/* SPDX-License-Identifier: Apache-2.0
 *
 * config_put.h: inside of config_write() and config_copy(): fields of a config.json that families have, or that say
 * what layers differ in.
 */
#ifndef NOJIT_TRAINER_CONFIG_PUT_H
#define NOJIT_TRAINER_CONFIG_PUT_H

#include "base/families.h"
#include "model/config.h"

#include <jansson.h>

/* Return a float as the shortest decimal that reads back as the same float, so that 1e-6f is written as 1e-06. */
json_t *real_of_float(float value);
/* Set the fields of rotations. */
void config_put_ropes(json_t *root, const struct model_config *c, const struct family *family);
/* Set the fields of biases and numbers that the family has. */
void config_put_numbers(json_t *root, const struct model_config *c, const struct family *family);
/* Set the window. */
void config_put_window(json_t *root, const struct model_config *c, const struct family *family);
/* Set the lists that say of each layer what it has; sliding_window has been set. */
void config_put_layers(json_t *root, const struct model_config *c, const struct family *family);

#endif
