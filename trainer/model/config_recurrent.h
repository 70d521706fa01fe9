/* SPDX-License-Identifier: Apache-2.0
 *
 * config_recurrent.h: inside of config_from(): families of which some layers have a recurrent block in the place of
 * attention, one that reads few rows or a state.
 */
#ifndef NOJIT_TRAINER_CONFIG_RECURRENT_H
#define NOJIT_TRAINER_CONFIG_RECURRENT_H

#include "base/families.h"
#include "model/config_fields.h"

/* Return the word of layer_types for such layers of a family; NULL: it has none. */
const char *config_recurrent_type(const struct family *family);
/* Read the sizes that such a family says in fields of its own: those of its MLPs. */
int config_recurrent_sizes(const struct fields *f, const struct family *family, struct block *mlp);
/* Read whether the LM head is tied. */
int config_tied(const struct fields *f, const struct family *family, bool *out);
/* Make the block. c: the sizes of the model. */
int config_recurrent(const struct fields *f, const struct family *family,
                     const struct model_config *c, struct block *out);
/* Set which layers have it where nothing lists their types. recurrent: [c->layers]. */
int config_recurrent_layers(const struct fields *f, const struct family *family,
                            const struct model_config *c, bool *recurrent);
/* Remove fields of a file that has been read where layer_types and tie_word_embeddings say the same or more. */
void config_settle_recurrent(json_t *root, const struct model_config *c);
/* Set those fields of a config.json. */
void config_put_recurrent(json_t *root, const struct model_config *c, const struct family *family);

#endif
