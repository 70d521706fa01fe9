/* SPDX-License-Identifier: Apache-2.0
 *
 * folder_names.h: the tensors of a Hugging Face folder under the names of its model, whoever saved them.
 */
#ifndef NOJIT_TRAINER_FOLDER_NAMES_H
#define NOJIT_TRAINER_FOLDER_NAMES_H

#include "formats/tensors.h"

#include <stdbool.h>

/* Names of a model's embedding table and head. */
#define FOLDER_EMBED "model.embed_tokens.weight"
#define FOLDER_HEAD "lm_head.weight"

/* Takes off prefixes of wrappers (module., _orig_mod., base_model.model., ...), adds the model. that the base model
 * alone is saved without, with a note, and drops buffers, which are computed. Returns 0 or NJ_E_FORMAT. */
int folder_names_settle(const char *dir, struct tensors *w);
/* Lets the head be the embedding table where a tied model has no other. */
int folder_names_share(const char *dir, struct tensors *w);
/* Whether a folder has a head that differs from its embedding table, whatever config.json says. */
int folder_has_own_head(const char *dir, bool *out);
/* Refuses tensors of types that no weight is read from. */
int folder_names_check(const char *dir, const struct tensors *w);

#endif
