/* SPDX-License-Identifier: Apache-2.0
 *
 * model_path.h: location of a model.
 */
#ifndef NOJIT_TRAINER_MODEL_PATH_H
#define NOJIT_TRAINER_MODEL_PATH_H

#include <stddef.h>

/* Find a model's Hugging Face folder or its GGUF file, given as a path, or, for a folder, as
 * ORG/NAME in the local Hugging Face cache ($HF_HUB_CACHE, $HF_HOME/hub,
 * ~/.cache/huggingface/hub). Nothing is ever downloaded. A file of another format is refused
 * with a sentence that names a tool to convert it. Return 0, NJ_E_IO, NJ_E_UNSUPPORTED. */
int model_resolve(const char *model, char *out, size_t bytes);

#endif
