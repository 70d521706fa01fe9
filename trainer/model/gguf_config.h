/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_config.h: the metadata of an open GGUF file as a configuration.
 */
#ifndef NOJIT_TRAINER_GGUF_CONFIG_H
#define NOJIT_TRAINER_GGUF_CONFIG_H

#include "formats/gguf.h"
#include "model/config.h"

#include <jansson.h>

/* Return the config.json that Hugging Face would have for the metadata; the caller must release it. */
int gguf_config_fields(const struct gguf *g, json_t **out);
/* Read the configuration, as gguf_config() does. */
int gguf_read_config(const struct gguf *g, struct model_config *out);

#endif
