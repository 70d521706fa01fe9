/* SPDX-License-Identifier: Apache-2.0
 *
 * model_path.h: where a model lies.
 */
#ifndef NOJIT_TRAINER_MODEL_PATH_H
#define NOJIT_TRAINER_MODEL_PATH_H

#include <stddef.h>

/* A model's Hugging Face folder or its GGUF file, given as a path, or, of a folder, as ORG/NAME in the local
 * Hugging Face cache ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub). Nothing is ever downloaded.
 * Files of other formats are refused with what converts them. Returns 0, NJ_E_IO, NJ_E_UNSUPPORTED. */
int model_resolve(const char *model, char *out, size_t bytes);

#endif
