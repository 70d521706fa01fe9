/* SPDX-License-Identifier: Apache-2.0
 *
 * config_from.h: a configuration from JSON with the names of Hugging Face's config.json, wherever it comes from.
 */
#ifndef NOJIT_TRAINER_CONFIG_FROM_H
#define NOJIT_TRAINER_CONFIG_FROM_H

#include "model/config.h"

#include <jansson.h>

struct config_name {
    char text[96];
};
/* A file as messages describe it. */
struct config_file {
    const char *path;
    struct config_name (*name)(const void *of,
                               const char *field); /* the file's name for a field; NULL: the same */
    const void *of;
    const char *remedy; /* remedy if the file itself cannot be corrected; NULL: it can */
};

/* Read a configuration; refuse what config_read() would refuse. */
int config_from(const struct config_file *f, json_t *object, struct model_config *out);
/* Run config_check() on the content of such a file. */
int config_check_file(const struct model_config *c, const struct config_file *f);

#endif
