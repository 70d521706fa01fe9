/* SPDX-License-Identifier: Apache-2.0
 *
 * init.h: new models, with random weights or with layers of another model.
 */
#ifndef NOJIT_TRAINER_INIT_H
#define NOJIT_TRAINER_INIT_H

#include "formats/safetensors.h"
#include "model/config.h"

#include <stdint.h>

/* A model by name; the list ends with name NULL. */
struct preset {
    const char *name, *summary;
    struct model_config config;
    const char *fields; /* fields of its config.json in place of `config`; NULL: that is it */
};
extern const struct preset presets[];
const struct preset *preset_find(const char *name); /* NULL: no preset has that name */
/* Get the configuration of a preset. Return 0, NJ_E_NOMEM, or what config_from() returns. */
int preset_config(const struct preset *p, struct model_config *out);

/* Write a model folder: matrices and embeddings normal with deviation 0.02, gains 1, biases 0; config.json and
 * generation_config.json; the tokenizer files and generation settings of the folder `tokenizer`, if it is not NULL. The
 * same seed gives the same bytes for any number of cores. Weights are cut into shards of at most max_shard_bytes. dir
 * must be new or empty and appears whole or not at all. Return 0, NJ_E_IO, NJ_E_NOMEM, NJ_E_FORMAT or
 * NJ_E_UNSUPPORTED. */
int init_model(const char *dir, const struct model_config *c, uint64_t seed,
               enum nj_tensor_type dtype, int64_t max_shard_bytes, const char *tokenizer);
/* Write a model folder in the same way with the weights of the model in the folder `from`: layer k is its layer
 * layers[k], and c is its shape except for c->layers, and for the number of experts of each layer: of so many it has
 * the first ones; 0: all. Tokenizer files and generation settings are copied. dtype NULL: each tensor keeps its own
 * type. */
int init_from_layers(const char *dir, const struct model_config *c, const char *from,
                     const int *layers, int experts, const enum nj_tensor_type *dtype,
                     int64_t max_shard_bytes);

#endif
