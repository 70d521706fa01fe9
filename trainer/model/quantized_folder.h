/* SPDX-License-Identifier: Apache-2.0
 *
 * quantized_folder.h: the weights of a Hugging Face folder, quantized or not.
 */
#ifndef NOJIT_TRAINER_QUANTIZED_FOLDER_H
#define NOJIT_TRAINER_QUANTIZED_FOLDER_H

#include "formats/tensors.h"
#include "model/config.h"

#include <stdbool.h>

/* Read a configuration as config_read() does, except that the LM head is not tied to the embedding table where the
 * weights hold a different one. */
int folder_config(const char *dir, struct model_config *out);
/* Open tensors as st_open() does, under the names of the model (folder_names.h); where config.json has a
 * quantization_config, quantized matrices have types that hold their numbers and scales, at about the size that they
 * have in the file. */
int folder_tensors(const char *dir, struct tensors *out);
/* Find whether its config.json has a quantization_config, and there are weights. */
int folder_is_quantized(const char *dir, bool *out);
/* Find whether its config.json says that experts are MXFP4, also without weights. */
int folder_has_mxfp4(const char *dir, bool *out);

#endif
