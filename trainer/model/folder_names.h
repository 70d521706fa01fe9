/* SPDX-License-Identifier: Apache-2.0
 *
 * folder_names.h: the tensors of a Hugging Face folder under the names of its model, whichever program saved them.
 */
#ifndef NOJIT_TRAINER_FOLDER_NAMES_H
#define NOJIT_TRAINER_FOLDER_NAMES_H

#include "formats/tensors.h"
#include "model/config.h"

#include <stdbool.h>

/* Names of a model's embedding table and head. */
#define FOLDER_EMBED "model.embed_tokens.weight"
#define FOLDER_HEAD "lm_head.weight"

/* Take off prefixes of wrappers (module., _orig_mod., base_model.model., ...), add, with a note, the "model." that
 * names lack where the base model was saved alone, and drop buffers, which are computed. Of a model of text and images
 * or sound keep the language model, under the names that it has alone, and say what is left out. Return 0 or
 * NJ_E_FORMAT. */
int folder_names_settle(const char *dir, struct tensors *w);
/* Leave out, with a note, what files of some families have to predict further tokens: tensors that begin with mtp., or
 * layers behind those of the model. */
void folder_names_cut(const char *dir, const struct model_config *c, struct tensors *w);
/* Let the LM head be the embedding table where a tied model has no other. */
int folder_names_share(const char *dir, struct tensors *w);
/* Find whether a folder has an LM head that differs from its embedding table, whatever config.json says. */
int folder_has_own_head(const char *dir, bool *out);
/* Refuse tensors of types that weights are not read from. */
int folder_names_check(const char *dir, const struct tensors *w);

#endif
