/* SPDX-License-Identifier: Apache-2.0
 *
 * gguf_model.h: a GGUF file as a model: its metadata as a configuration, its tensors under the names of Hugging Face.
 */
#ifndef NOJIT_TRAINER_GGUF_MODEL_H
#define NOJIT_TRAINER_GGUF_MODEL_H

#include "formats/tensors.h"
#include "model/config.h"

/* Read the configuration, from the first part where the model is split. A feature that nojit does not compute is
 * refused by key and value. Return 0, NJ_E_IO, NJ_E_FORMAT, NJ_E_UNSUPPORTED or NJ_E_NOMEM. */
int gguf_config(const char *path, struct model_config *out);
/* Open the model's tensors and no others, each of the shape that its role has. */
int gguf_tensors(const char *path, struct tensors *out);

#endif
