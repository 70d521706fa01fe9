/* SPDX-License-Identifier: Apache-2.0
 *
 * config_composite.h: files of models of text and images, of which the language model is read.
 */
#ifndef NOJIT_TRAINER_CONFIG_COMPOSITE_H
#define NOJIT_TRAINER_CONFIG_COMPOSITE_H

#include "model/config_fields.h"

/* Return whether a file is one of those whose text_config is read. */
bool config_is_composite(const json_t *root);
/* Make the config.json that the language model of such a file would have alone, which the caller releases. A field
 * beside text_config that is not known is refused by name. */
int config_text(const struct config_file *f, json_t *root, json_t **out);
/* Return the name that a field of it has in the file: for struct config_file, of the file's root. */
struct config_name config_text_name(const void *root, const char *field);

#endif
