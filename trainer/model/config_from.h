/* SPDX-License-Identifier: Apache-2.0
 *
 * config_from.h: a configuration from JSON with the names of Hugging Face's config.json, wherever it comes from.
 */
#ifndef NOJIT_TRAINER_CONFIG_FROM_H
#define NOJIT_TRAINER_CONFIG_FROM_H

#include "model/config.h"

#include <jansson.h>

/* where: for the message. Refuses what config_read() would. */
int config_from(const char *where, json_t *object, struct model_config *out);

#endif
