/* SPDX-License-Identifier: Apache-2.0
 *
 * quantized_folder.h: the weights of a Hugging Face folder, quantised or not.
 */
#ifndef NOJIT_TRAINER_QUANTISED_FOLDER_H
#define NOJIT_TRAINER_QUANTISED_FOLDER_H

#include "formats/tensors.h"
#include "model/config.h"

#include <stdbool.h>

/* As config_read(); but the head is not tied to the embedding table where the weights hold another one. */
int folder_config(const char *dir, struct model_config *out);
/* As st_open(), under the names of the model (folder_names.h); where config.json has a quantization_config,
 * matrices that are quantised are of the types that their
 * numbers and scales fit in, at about the size that they have in the file. */
int folder_tensors(const char *dir, struct tensors *out);
/* Whether its config.json has one, and weights are there. */
int folder_is_quantised(const char *dir, bool *out);

#endif
